package proto

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/auto"
)

// TestAfford: a limit too low for a NIC's own buffers is told once, with their sum, and that sum is enough.
func TestAfford(t *testing.T) {
	open := func(most int64) (*Engine, error) {
		s := sched.Goroutine(1)
		e := New(Config{
			Size: 1, Sched: s, Peers: peers.New(1), Nodes: []int{0}, NICName: "tcp",
			OpenNIC: func(ctx context.Context) (transport.Domain, error) {
				p, err := auto.Provider("tcp", auto.Config{MaxPinned: most})
				if err != nil {
					return nil, err
				}
				return p.Open(ctx, transport.Config{Size: 1, Job: "afford", Secret: []byte("s"), Sched: s})
			},
		})
		return e, e.openNIC(t.Context())
	}
	var limit *transport.LimitError
	_, err := open(1)
	require.ErrorAs(t, err, &limit)
	require.Contains(t, limit.Found, "1 byte that it may register")
	require.Regexp(t, `^\d+\.\d [KM]iB in all`, limit.Needed)
	require.Regexp(t, `^PGAS_MAX_PINNED=\d+M or more`, limit.Setting)

	e, err := open(1 << 30)
	require.NoError(t, err)
	m := e.Memory(1)
	require.Positive(t, m.Leases)
	require.Positive(t, m.Measuring)
	require.Greater(t, e.Memory(64).Messages, m.Messages)
	require.NoError(t, e.Close())

	const little = 1 << 20
	e, err = open(little)
	require.NoError(t, err)
	few := e.Memory(1)
	require.NoError(t, e.Close())
	require.Less(t, few.Slots, m.Slots, "fewer slots where little may be pinned")
	const pages = 3 * 4096 // each of the three buffers begins a page
	enough := int64(few.Slots + few.Scratch + few.Messages)
	require.Less(t, enough, int64(little))
	_, err = open(enough - 1)
	require.ErrorAs(t, err, &limit)
	e, err = open(enough + pages)
	require.NoError(t, err)
	require.NoError(t, e.Close())
}
