package proto

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/cost"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/internal/seats"
	"gopgas/regmgr"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// TestPreferredPolicy: where nobody asks for a policy it is chosen by cores, budget and costs; who asks for one gets it.
func TestPreferredPolicy(t *testing.T) {
	dear, err := cost.Named("helper-threads")
	require.NoError(t, err)
	const gib = 1 << 30
	for name, one := range map[string]struct {
		r      Registration
		pinned int64
		want   regmgr.Policy
		why    string
	}{
		"scarce":         {Registration{Preferred: true, Idle: IdleCores{Policy: seats.Auto, Cores: 2}, Memory: gib, Costs: &dear}, 16 << 20, regmgr.Predictive, "a core is idle"},
		"no core":        {Registration{Preferred: true, Idle: IdleCores{Policy: seats.Auto, Cores: 1}, Memory: gib, Costs: &dear}, 16 << 20, regmgr.LeavePinned, "no core"},
		"no limit":       {Registration{Preferred: true, Idle: IdleCores{Policy: seats.Auto, Cores: 2}, Memory: gib, Costs: &dear}, 0, regmgr.LeavePinned, "no limit"},
		"measured first": {Registration{Preferred: true, Idle: IdleCores{Policy: seats.Auto, Cores: 2}, Memory: gib}, 16 << 20, -1, "unregistered costs"},
		"asked for":      {Registration{Policy: regmgr.OnDemand, Idle: IdleCores{Cores: 2}, Memory: gib, Costs: &dear}, 16 << 20, regmgr.OnDemand, "asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sched.Goroutine(1)
			d, err := transporttest.NewFabric(1, transporttest.FabricConfig{MaxPinned: one.pinned}).Provider(0).
				Open(t.Context(), transport.Config{Size: 1, Job: t.Name(), Sched: s})
			require.NoError(t, err)
			e := New(Config{
				Size: 1, Sched: s, Peers: peers.New(1), NICName: "loopback", Nodes: []int{0}, Registration: one.r,
				OpenNIC: func(context.Context) (transport.Domain, error) { return d, nil },
			})
			require.NoError(t, e.openNIC(t.Context()))
			got, _, ok := e.Registered()
			require.True(t, ok)
			if one.want >= 0 {
				require.Equal(t, one.want.String(), got.Policy)
			}
			require.Contains(t, got.Why, one.why)
			require.NoError(t, e.Close())
		})
	}
}

// spent is a NIC that registers no more once it has its receive buffers.
type spent struct{ refusing }

func (s *spent) PostRecv(bufs []transport.Recv) (int, error) {
	s.on.Store(true)
	return s.Domain.PostRecv(bufs)
}

// TestPolicyWithoutCosts: where the NIC registers nothing to measure with the world begins all the same, and says so: under the policy that needs no
// costs, or by published ones where somebody has asked for the other.
func TestPolicyWithoutCosts(t *testing.T) {
	for name, one := range map[string]struct {
		r    Registration
		want regmgr.Policy
		why  string
	}{
		"preferred": {Registration{Preferred: true, Idle: IdleCores{Policy: seats.Auto, Cores: 3}, Memory: 1 << 30}, regmgr.LeavePinned, "what a registration costs is not known: "},
		"asked for": {Registration{Policy: regmgr.Predictive, Idle: IdleCores{Always: true}}, regmgr.Predictive, "asked for; "},
	} {
		t.Run(name, func(t *testing.T) {
			wrap := func(d transport.Domain) transport.Domain { return &spent{refusing{Domain: d}} }
			e, to, memory := pair(t, 64<<10, one.r, transporttest.FabricConfig{MaxPinned: 16 << 20}, wrap)
			got, _, ok := e.Registered()
			require.True(t, ok)
			require.Equal(t, one.want.String(), got.Policy)
			require.Contains(t, got.Why, one.why+"what registrations cost on the loopback NIC cannot be measured")
			src := filled(64 << 10)
			require.NoError(t, e.Put(to, 0, src))
			require.NoError(t, e.Flush(to))
			require.Equal(t, src.Data(), memory.Data())
		})
	}
}
