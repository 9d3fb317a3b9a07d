package nic

import (
	"testing"

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

// TestHush: a wait for the NIC tells it for how long it polls without a pause.
func TestHush(t *testing.T) {
	h := &hushed{}
	alone := func(int) *sched.Sched { return sched.ProcessOn(1, 1) }
	w := newWorldOn(t, 1, alone, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { h.Domain = d; return h })
	for h.told == nil {
		looks := 20
		require.NoError(t, w.n[0].WaitUntil("test", -1, func() bool { looks--; return looks < 0 }))
		require.True(t, h.told != nil || invariants.Enabled, "where they are checked a wait pauses early at times")
	}
	require.Equal(t, []bool{true, false}, h.told)
}
