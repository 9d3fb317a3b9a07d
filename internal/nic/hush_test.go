package nic

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/invariants"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// hushed is a NIC that writes down what it is told.
type hushed struct {
	transport.Domain
	told []bool
}

func (h *hushed) Hush(on bool) { h.told = append(h.told, on) }

// TestHush: a wait tells that it polls without a pause when it has done so for some looks, and that it does so no longer when it ends, or pauses.
func TestHush(t *testing.T) {
	h := &hushed{}
	alone := func(int) *sched.Sched { return sched.ProcessOn(1, 1) }
	w := newWorldOn(t, 1, alone, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { h.Domain = d; return h })
	n := w.n[0]
	wait := func(looks int) {
		h.told = nil
		require.NoError(t, n.WaitUntil("test", -1, func() bool { looks--; return looks < 0 }))
	}
	wait(0)
	require.Empty(t, h.told)
	wait(hushAfter - 1)
	require.Empty(t, h.told, "the shortest tell nothing")
	for wait(hushAfter + 3); invariants.Enabled && h.told == nil; { // where they are checked a wait pauses early at times
		wait(hushAfter + 3)
	}
	require.Equal(t, []bool{true, false}, h.told)

	h.told = nil
	for began := time.Now(); h.told == nil; {
		require.Less(t, time.Since(began), patient, "it is told of no pause")
		_ = n.WaitWithin(t.Context(), "test", -1, func() bool {
			return len(h.told) == 2 || time.Since(began) > patient || invariants.Enabled && h.told == nil && time.Since(began).Microseconds()%1000 == 0
		})
	}
	require.Equal(t, []bool{true, false}, h.told, "once each, the second while the wait went on")
}

// TestHushOfFewCores: where a wait pauses from the first nobody is told anything.
func TestHushOfFewCores(t *testing.T) {
	h := &hushed{}
	w := newWorld(t, 1, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { h.Domain = d; return h })
	looks := 200
	require.NoError(t, w.n[0].WaitUntil("test", -1, func() bool { looks--; return looks < 0 }))
	require.Empty(t, h.told)
}
