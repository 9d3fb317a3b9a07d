package verbs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
	"gopgas/transport/verbs/internal/side"
)

// closing is rank 0 of 2 as while it closes, when pairs end without the device.
func closing() *domain {
	d := &domain{size: 2, peers: make([]peer, 2)}
	for r := range d.peers {
		d.peers[r].rank, d.peers[r].changed = r, make(chan struct{})
	}
	d.closed.Store(true)
	return d
}

// fresh is a pair with rank 1 that has no queue pair.
func (d *domain) fresh() *pair {
	return &pair{d: d, peer: &d.peers[1], ring: newRing(1), ending: make(chan struct{})}
}

// called has an instance of rank 1, which knows of connections up to last, dial, and returns what it is told, and its pair.
func (d *domain) called(instance, last uint64) (side.Word, *pair) {
	q := d.fresh()
	h := side.Hello{From: side.Address{Rank: 1, Instance: instance}, Last: last}
	w, _ := d.welcome(q.peer, q, nil, &h, meeting{peer: 1, size: 2, job: true})
	return w, q
}

// TestAnewBeforeDead: a rank that was started anew dials before the end of its predecessor was noticed, whose machine may have lost its power. It need not
// wait for that, and the predecessor is known to be gone.
func TestAnewBeforeDead(t *testing.T) {
	d := closing()
	p := &d.peers[1]
	_, before := d.called(7, 0)
	before.state.Store(pairUp)
	require.Equal(t, stepUse, p.nextLocked(before, 7))
	require.Equal(t, stepDial, p.nextLocked(before, 8), "whoever has the address of the new one dials that")
	w, _ := d.called(7, 0)
	require.Equal(t, side.WordYield, w, "it does not know of the connection there is")

	p.suspect.Store(true)
	p.dialing, p.addr = true, side.Address{Rank: 1, Instance: 7}
	w, _ = d.called(7, before.serial)
	require.Equal(t, side.WordYield, w, "its own dial is on the way")
	w, next := d.called(8, 0)
	require.Equal(t, side.WordAccept, w)
	require.Greater(t, next.ep.Incarnation, before.ep.Incarnation)
	require.EqualValues(t, verdictGone, before.verdict.Load())
	require.False(t, p.suspect.Load(), "its silence says nothing of the new one")
	why := d.Explain(transport.Completion{EP: before.ep, Kind: transport.OpPeerDown, Status: transport.StatusPeerGone})
	require.ErrorIs(t, why, transport.ErrPeerGone)
	require.ErrorContains(t, why, "rank 1 has ended, and was started anew")

	next.state.Store(pairUp)
	p.dialing = false
	require.Equal(t, stepUse, p.nextLocked(next, 8))
	require.Equal(t, stepDial, p.nextLocked(next, 7), "the address of the old one does not lead to the new one")
	_, again := d.called(8, next.serial)
	require.Equal(t, faultReplaced, next.fault)
	require.EqualValues(t, verdictAlive, next.verdict.Load())
	require.Same(t, again, p.cur.Load())
}

// TestSuspicionOfAnEarlierPair: that the peer's NIC did not answer on one pair says nothing of a later one over which something has got through, nor of one with
// another domain of the peer's, however long after that the verdict on the first is sought.
func TestSuspicionOfAnEarlierPair(t *testing.T) {
	for name, instance := range map[string]uint64{"the same": 7, "started anew": 8} {
		d := closing()
		d.ctx = t.Context()
		p := &d.peers[1]
		_, first := d.called(7, 0)
		first.end(faultSilent, nil)
		_, next := d.called(instance, first.serial)
		if instance == 7 {
			p.suspect.Store(false) // something has got through
		}
		first.judge()
		require.False(t, p.suspect.Load(), name)
		next.end(faultSilent, nil)
		next.judge()
		require.Error(t, next.again, "%s: nobody has tried to connect again", name)
		_, last := d.called(instance, next.serial)
		last.end(faultSilent, nil)
		last.judge()
		require.NoError(t, last.again, "%s: it has been silent twice", name)
	}
}

// TestAnewConnects is TestAnewBeforeDead with queue pairs.
func TestAnewConnects(t *testing.T) {
	a, before := open(t, 0, 2), open(t, 1, 2)
	ep, old := a.dial(before), before.Address()
	b := open(t, 1, 2)
	back := b.dial(a)
	require.Equal(t, transport.StatusOK, b.do(b.write(back, a.mem.Addr(), a.reg.RKey)).Status)
	require.Equal(t, transport.Completion{EP: ep, Kind: transport.OpPeerDown, Status: transport.StatusPeerGone}, a.next(10*time.Second))
	require.Equal(t, transport.StatusOK, a.do(a.write(a.dial(b), b.mem.Addr(), b.reg.RKey)).Status)
	require.NoError(t, before.Close())
	_, err := a.Connect(t.Context(), 1, old)
	require.ErrorIs(t, err, transport.ErrPeerGone, "what is meant for the old one does not get to the new one")
}

// TestLateAccept: a listener's word that comes when it has given that connection up, and has made another one itself, does not end the newer one.
func TestLateAccept(t *testing.T) {
	d := closing()
	p := &d.peers[1]
	_, newer := d.called(7, 1) // rank 1 has accepted a dial, of number 1, and now dials itself
	newer.state.Store(pairUp)
	require.False(t, p.take(d.fresh(), nil, newer.to, 1))
	require.Same(t, newer, p.cur.Load())
	require.EqualValues(t, pairUp, newer.state.Load())
	next := d.fresh()
	require.True(t, p.take(next, nil, newer.to, newer.serial+1))
	require.Same(t, next, p.cur.Load())
	require.Equal(t, faultReplaced, newer.fault)
}
