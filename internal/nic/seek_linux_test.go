package nic

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/tcp"
)

// TestWhoOnlyWaitsOverTCP: the connection with a peer, which had made it, has ended by a request that was refused. The peer dies, and nobody tells: who only waits for it learns of that.
func TestWhoOnlyWaitsOverTCP(t *testing.T) {
	var d [2]transport.Domain
	var s [2]*sched.Sched
	for r := range d {
		s[r] = sched.Goroutine(2)
		var err error
		d[r], err = tcp.New(tcp.Config{}).Open(t.Context(), transport.Config{Rank: r, Size: 2, Job: t.Name(), Secret: []byte(t.Name()), Sched: s[r]})
		require.NoError(t, err)
		defer d[r].Close() //nolint:errcheck // rank 0's is closed already
	}
	n, err := New(Config{Rank: 1, Size: 2, Name: "tcp", Domain: d[1], Sched: s[1], Peers: peers.New(2), Client: &listener{}})
	require.NoError(t, err)
	require.NoError(t, n.Listen(0))
	n.Learn(0, d[0].Address())
	n.between = 5 * time.Millisecond
	n.Start()
	defer n.Quit()

	// Rank 0, which has no more of a NIC than a Domain, is refused, and the connection ends with that.
	ep, err := d[0].Connect(t.Context(), 1, d[1].Address())
	require.NoError(t, err)
	m := mem.Of(make([]uint64, 1))
	key, err := d[0].Register(m, transport.AllAccess)
	require.NoError(t, err)
	op := transport.Op{Kind: transport.OpWrite, Flags: transport.FlagSignaled, NSGE: 1, EP: ep, RAddr: m.Addr(), RKey: 1}
	op.SGE[0] = transport.SGE{Mem: m, LKey: key.LKey}
	_, err = d[0].Post([]transport.Op{op})
	require.NoError(t, err)
	var cq [1]transport.Completion
	require.Eventually(t, func() bool { k, err := d[0].Poll(cq[:]); return err == nil && k == 1 }, patient, time.Millisecond)
	require.Equal(t, transport.StatusRemoteAccess, cq[0].Status)

	wait := make(chan error, 1)
	go func() { wait <- n.WaitUntil("wait", 0, func() bool { return false }) }()
	require.Eventually(t, func() bool { return len(n.sched.Waits()) == 1 }, patient, time.Millisecond)
	require.NoError(t, n.peers.Check(0), "it lives")
	require.NoError(t, d[0].Close())
	select {
	case err := <-wait:
		require.ErrorIs(t, err, transport.ErrPeerGone)
	case <-time.After(patient):
		t.Fatal("the wait does not end")
	}
}
