package nic

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/invariants"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// hushed is a NIC that writes down what it is told.
type hushed struct {
	transport.Domain
	told []sched.Polling
}

func (h *hushed) Hush(how sched.Polling) { h.told = append(h.told, how) }

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
	require.True(t, slices.Equal([]sched.Polling{sched.Steadily, sched.NoMore}, h.told) || invariants.Enabled && len(h.told) == 2, "%v", h.told)
}

// TestPostAwaited: the NIC is told of who posts what is long, and waits for it next, from the post on; and of nobody else.
func TestPostAwaited(t *testing.T) {
	h := &hushed{}
	alone := func(int) *sched.Sched { return sched.ProcessOn(1, 1) }
	w := newWorldOn(t, 1, alone, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { h.Domain = d; return h })
	n := w.n[0]
	both := mem.Of(make([]uint64, 2*longLeast/8))
	user, there := both.Slice(0, longLeast), both.Slice(longLeast, longLeast)
	key, err := n.Domain.Register(both, transport.AllAccess)
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Domain.Deregister(key)) }()
	for _, c := range []struct {
		kind  transport.Kind
		bytes int
		told  []sched.Polling
	}{
		{transport.OpWrite, longLeast, []sched.Polling{sched.Steadily, sched.NoMore}},
		{transport.OpWrite, longLeast - 8, nil},
		{transport.OpRead, longLeast, nil},
	} {
		h.told = nil
		hd, id, err := n.BeginOne(OpPut, 0)
		require.NoError(t, err)
		op := transport.Op{Kind: c.kind, NSGE: 1, RAddr: there.Addr(), RKey: key.RKey}
		op.SGE[0] = transport.SGE{Mem: user.Slice(0, c.bytes), LKey: key.LKey}
		require.NoError(t, n.PostAwaited(OpPut, id, op))
		require.Equal(t, c.told, h.told, "%v of %d bytes", c.kind, c.bytes)
		require.NoError(t, hd.Wait(t.Context()))
	}
}
