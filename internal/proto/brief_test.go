package proto

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// brief are the operations whose time is the engine's rather than the NIC's.
var brief = []struct {
	name string
	do   func(e *Engine, to *Remote, word mem.Range) error
}{
	{"put8", func(e *Engine, to *Remote, word mem.Range) error { return errors.Join(e.Put(to, 0, word), e.Flush(to)) }},
	{"get8", func(e *Engine, to *Remote, word mem.Range) error { return e.Get(to, 0, word) }},
	{"fetchadd", func(e *Engine, to *Remote, _ mem.Range) error {
		_, err := e.Atomic(atom.Sum, atom.Word64(), to, 0, 1, 0)
		return err
	}},
	{"put8x64", func(e *Engine, to *Remote, word mem.Range) error {
		var errs error
		for i := range 64 {
			if _, err := e.PutNB(to, 8*i, word); err != nil {
				errs = err
			}
		}
		return errors.Join(errs, e.Flush(to))
	}},
}

// BenchmarkBrief is the engine's part of short operations, each with what waits for it: the NIC takes no time. How many instructions each
// room of the library spends on one of them tools/instructions.sh says.
func BenchmarkBrief(b *testing.B) {
	for _, op := range brief {
		b.Run(op.name, func(b *testing.B) {
			var nic *idling
			tm := newTeamOf(b, 2, tightBytes, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain {
				nic = &idling{Domain: d}
				return nic
			})
			e, to, word := tm.e[0], &tm.of[0][1], mem.Of(make([]uint64, 1))
			do := func() {
				if err := op.do(e, to, word); err != nil {
					b.Fatal(err)
				}
			}
			for range 40 {
				do()
			}
			require.NoError(b, tm.e[1].Flush(&tm.of[1][0]))
			nic.on.Store(true)
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
			nic.on.Store(false)
		})
	}
}
