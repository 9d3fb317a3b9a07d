package prices

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/eager"
	"gopgas/internal/cost"
	"gopgas/internal/selector"
)

// measuredMachine is one of which all is known that is ever measured.
func measuredMachine() selector.Machine {
	m := Published(testMachine()).Selector.Machine()
	m.Model.Copies = cost.Speeds{{Bytes: 4 * kib, Speed: 8e9}, {Bytes: 1 << 20, Speed: 5e9}}
	m.Model.Copy = m.Model.Copies.At
	m.Model.Writes = cost.Curve{{N: 64, Nanos: 900}, {N: 1 << 20, Nanos: 2e5}}
	m.Model.Reads = cost.Curve{{N: 64, Nanos: 1900.5}, {N: 1 << 20, Nanos: 3e5}}
	m.Model.Slowed, m.Model.Fresh, m.Model.FreshStart, m.Model.Cut = 0.25, 4e9, 1e-7, 1e-8
	m.First = 2e-9
	m.Slotted, m.Piped = selector.Tuning{Put: 1e-11, Get: -1e-11}, selector.Tuning{Put: 2e-11}
	m.Puts[selector.Pipe] = selector.More{{Bytes: 4 * kib, Seconds: 1e-6}, {Bytes: 1 << 20, Seconds: -3e-5}}
	m.Gets[selector.Direct] = selector.More{{Bytes: 64, Seconds: 1e-7}}
	m.Runs[selector.Bounce] = selector.More{{Bytes: 4 * kib, Seconds: 1e-6}, {Bytes: 256 * kib, Seconds: 2e-5}}
	return m
}

// TestSheet: a sheet says all that was measured, and nothing of what its reader knows without that.
func TestSheet(t *testing.T) {
	small := [3]eager.Costs{{{Bytes: 64, Copy: 10, Wire: 500}, {Bytes: 4096, Copy: 500, Lookup: 20, ColdAsk: 3}}, {{Bytes: 64, Copy: 11}}, nil}
	p := From(measuredMachine(), small)
	p.Abroad = true
	written, err := p.Sheet()
	require.NoError(t, err)
	own := testMachine()
	own.Idle = !own.Idle
	q, err := FromSheet(own, written)
	require.NoError(t, err)
	require.True(t, q.Measured && q.Abroad)
	require.Equal(t, small, q.Small)
	have, want := q.Selector.Machine(), p.Selector.Machine()
	require.Equal(t, own.Idle, have.Idle)
	for bytes := 1.0; bytes < 4<<20; bytes *= 3 {
		require.InDelta(t, want.Model.Copy(bytes), have.Model.Copy(bytes), 0)
	}
	have.Idle, have.Model.Copy, want.Model.Copy = want.Idle, nil, nil
	require.Equal(t, want, have)

	_, err = Published(testMachine()).Sheet()
	require.ErrorIs(t, err, errUnmeasured)
}

// TestSheetRefuses what nobody can have measured.
func TestSheetRefuses(t *testing.T) {
	written, err := From(measuredMachine(), [3]eager.Costs{}).Sheet()
	require.NoError(t, err)
	for _, c := range []struct{ old, new, says string }{
		{`{`, `[`, "sheet"},
		{`"Net":2000000000`, `"Net":0`, "bandwidth 0"},
		{`"Net":2000000000`, `"Net":1e-300`, "bandwidth 1e-300"},
		{`"Reg":20480000000`, `"Reg":5e-324`, "bandwidth of registration 5e-324"},
		{`"First":2e-9`, `"First":-2e-9`, "first use of a byte -2e-09"},
		{`"Gap":2e-7`, `"Gap":-1`, "gap -1"},
		{`"Gap":2e-7`, `"Gap":1e300`, "gap 1e+300"},
		{`"Fresh":4000000000`, `"Fresh":1e-300`, "fresh copies 1e-300"},
		{`"Piped":{"Put":2e-11`, `"Piped":{"Put":-1e300`, "more by -1e+300 s"},
		{`"Slowed":0.25`, `"Slowed":-0.25`, "slowing -0.25"},
		{`"Speed":8000000000`, `"Speed":0`, "copies of 4096"},
		{`"Bytes":1048576,"Speed"`, `"Bytes":4096,"Speed"`, "copies of 4096"},
		{`"Copies":[{"Bytes":4096,"Speed":8000000000},{"Bytes":1048576,"Speed":5000000000}]`, `"Copies":[]`, "no speed"},
		{`1900.5`, `400000`, "growing"},
		{`1900.5`, `1e-300`, "growing"},
		{`"Reads":[{"n":64`, `"Reads":[{"n":63`, "different sizes"},
		{`"Reads":[{"n":64,"ns":1900.5},{"n":1048576,"ns":300000}]`, `"Reads":[]`, "different sizes"},
		{`"Seconds":-0.00003`, `"Seconds":-1e300`, "superpipe of 1048576 bytes, more by -1e+300 s"},
		{`{"Bytes":262144,"Seconds":0.00002}`, `{"Bytes":4096,"Seconds":0.00002}`, "bounce of 4096"},
	} {
		changed := strings.Replace(string(written), c.old, c.new, 1)
		require.NotEqual(t, string(written), changed, "%s is not in %s", c.old, written)
		_, err := FromSheet(testMachine(), []byte(changed))
		require.ErrorContains(t, err, c.says)
	}
}
