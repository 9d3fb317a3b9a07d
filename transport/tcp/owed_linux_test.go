package tcp

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// TestAnswersUnderWay: a peer that has its answers may ask for as many more, though who sent them has not heard yet that they are sent.
func TestAnswersUnderWay(t *testing.T) {
	const window = 8
	a, b, l := twoRanks(t, Config{MaxPost: window})
	back := func() *link { return b.links[0].Load() }
	require.Eventually(t, func() bool { return back() != nil }, testPatience, time.Millisecond)
	reads := func() {
		for range window {
			n, err := b.Post([]transport.Op{b.op(transport.OpRead, back(), a, 0, 0, 64)})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
	}
	performed := func(n uint64) {
		t.Helper()
		require.Eventually(t, func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.performed == n || l.state != stateUp
		}, testPatience, 100*time.Microsecond)
		require.True(t, l.alive.Load(), "the link has ended")
	}
	came := func() {
		t.Helper()
		for range window {
			c := b.await(t, func(transport.Completion) bool { return true })
			require.Equal(t, transport.StatusOK, c.Status)
		}
	}
	on := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(on) })
	t.Cleanup(goOn) // before the ranks are closed
	l.mu.Lock()
	write := l.writeFn
	l.writeFn = func(fd uintptr) {
		write(fd)
		<-on
	}
	l.blocked = true // so that it is the sender who answers
	l.mu.Unlock()
	reads()
	performed(window)
	l.wakeSender()
	came()
	reads()
	performed(2 * window)
	goOn()
	came()
}
