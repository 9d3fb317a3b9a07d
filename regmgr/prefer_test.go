package regmgr

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/cost"
)

func TestPrefer(t *testing.T) {
	paper, err := cost.Named("helper-threads")
	require.NoError(t, err)
	cheap := paper // a NIC that translates addresses itself
	cheap.Register, cheap.Deregister = cost.Line{A: 1, B: 100}, cost.Line{A: 1, B: 100}
	untimed := paper
	untimed.Transfer = nil
	const gib = 1 << 30
	good := Facts{Idle: 1, Bytes: gib / 2, Memory: 8 * gib, Costs: paper}
	for name, one := range map[string]struct {
		change  func(*Facts)
		want    Policy
		measure bool
		why     string
	}{
		"a scarce budget, an idle core, a dear registration": {func(*Facts) {}, Predictive, false, "only 512.0 MiB may be registered of 8.0 GiB of memory, to find 1.0 MiB unregistered costs"},
		"the transfer was not timed":                         {func(f *Facts) { f.Costs = untimed }, Predictive, false, "a core is idle"},
		"no core":                                            {func(f *Facts) { f.Idle = 0 }, LeavePinned, false, "no core is idle"},
		"more ranks than cores":                              {func(f *Facts) { f.Idle = -3 }, LeavePinned, false, "no core is idle"},
		"no limit":                                           {func(f *Facts) { f.Bytes = 0 }, LeavePinned, false, "has no limit"},
		"a limit that is none":                               {func(f *Facts) { f.Bytes = 2 * gib }, LeavePinned, false, "2.0 GiB may be registered of 8.0 GiB"},
		"just below it":                                      {func(f *Facts) { f.Bytes = 2*gib - 1 }, Predictive, false, ""},
		"unknown memory":                                     {func(f *Facts) { f.Memory = 0 }, LeavePinned, false, "not known"},
		"unknown costs":                                      {func(f *Facts) { f.Costs = cost.Model{} }, LeavePinned, true, "what a registration costs is not known"},
		"cheap registrations":                                {func(f *Facts) { f.Costs = cheap }, LeavePinned, false, "unregistered costs 712ns of"},
	} {
		t.Run(name, func(t *testing.T) {
			f := good
			one.change(&f)
			got, why, measure := f.Prefer()
			require.Equal(t, one.want, got)
			require.Equal(t, one.measure, measure)
			require.Contains(t, why, one.why)
		})
	}
}
