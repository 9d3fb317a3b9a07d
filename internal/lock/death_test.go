package lock

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/atom"
	"gopgas/internal/peers"
	"gopgas/transport"
)

// dies has all know that a member is gone.
func dies(all []Group, member int) {
	for _, g := range all {
		g.Engine.Peers.MarkGone(member, peers.Vanished)
	}
}

// waiting begins a lock that has to wait, and returns what it comes to.
func waiting(t *testing.T, of Group, lock func(context.Context) error) <-chan error {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	got := make(chan error, 1)
	go func() {
		defer cancel()
		got <- lock(ctx)
	}()
	require.Eventually(t, func() bool { return len(of.Engine.Sched.Waits()) == 1 }, 20*time.Second, time.Millisecond)
	return got
}

// TestReleaserDies: at any moment of a release. A waiter gets the lock, or is told that it is lost.
func TestReleaserDies(t *testing.T) {
	for name, release := range map[string]func(l *Mutex){
		"free, and not looked again": func(l *Mutex) { _, _ = l.home(atom.Replace, lockHolder, 0, 0) },
		"handed on, and not told": func(l *Mutex) {
			_, _, _ = l.nextWaiter()
			_, _ = l.home(atom.Replace, lockHolder, 3, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := groups(3)
			ms := mutexes(all)
			require.NoError(t, ms[1].Lock(t.Context()))
			got := waiting(t, all[2], ms[2].Lock)
			release(ms[1])
			dies(all, 1)
			require.NoError(t, <-got)
			ok, err := ms[0].TryLock()
			require.NoError(t, err)
			require.False(t, ok)
			require.NoError(t, ms[2].Unlock())
			require.NoError(t, ms[0].Lock(t.Context()))
		})
	}
}

// handsOn has l's member, which holds the lock, make another one its holder, and not tell it.
func handsOn(t *testing.T, l *RW, to int) {
	require.NoError(t, l.guarded(t.Context(), func(words []uint64) error {
		require.NoError(t, l.write(l.g.Me, 0))
		return l.write(to, words[to]|rwHolds)
	}))
}

// TestGranterDies: between making a waiter the holder of an RW and telling it.
func TestGranterDies(t *testing.T) {
	all := groups(3)
	rs := rws(all)
	require.NoError(t, rs[1].Lock(t.Context()))
	got := waiting(t, all[2], rs[2].RLock)
	handsOn(t, rs[1], 2)
	dies(all, 1)
	require.NoError(t, <-got)
	require.NoError(t, rs[2].RUnlock())
	require.NoError(t, rs[0].Lock(t.Context()))
}

// TestGuardIsLost: who stands in the queue of an RW hears of it, too, since nobody can hand the lock on.
func TestGuardIsLost(t *testing.T) {
	all := groups(4)
	rs := rws(all)
	require.NoError(t, rs[0].Lock(t.Context()))
	got := waiting(t, all[2], rs[2].Lock)
	require.NoError(t, rs[1].guard.Lock(t.Context())) // about to stand in line
	dies(all, 1)
	require.ErrorIs(t, rs[0].Unlock(), transport.ErrPeerGone)
	err := <-got
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.ErrorContains(t, err, "it held the lock: ")
	_, err = rs[3].TryLock()
	require.ErrorIs(t, err, transport.ErrPeerGone)
}

// TestLostGrant: one of an earlier turn comes behind that of the present one, in the same word: it was long on its way. The waiter finds out that it holds the lock.
func TestLostGrant(t *testing.T) {
	all := groups(3)
	rs := rws(all)
	require.NoError(t, rs[1].Lock(t.Context()))
	got := waiting(t, all[2], rs[2].Lock)
	handsOn(t, rs[1], 2)
	rs[2].local.Word64(rwGrant).Store(rs[2].turns + 1) // any but its own
	require.NoError(t, <-got)
	require.NoError(t, rs[2].Unlock())
	require.NoError(t, rs[0].Lock(t.Context()))
}
