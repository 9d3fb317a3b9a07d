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
