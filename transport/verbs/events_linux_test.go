//go:build cgo && (amd64 || arm64)

package verbs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport/verbs/internal/ibv"
)

// eventsVariable is set in the process whose libibverbs is testdata/events.c.
const eventsVariable = "VERBS_TEST_EVENTS"

// TestEventIsHeld: an event is acknowledged when what it says has been done to its pair, whose queue pair cannot end before: another one would have its handle.
func TestEventIsHeld(t *testing.T) {
	if os.Getenv(eventsVariable) != "" {
		eventIsHeld(t)
		return
	}
	const source = "testdata/events.c"
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skipf("Caps: no C compiler: %v", err)
	}
	if _, err := os.Stat(source); err != nil {
		t.Skipf("Caps: no source, as where the program runs elsewhere: %v", err)
	}
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), gcc, "-shared", "-fPIC", "-o", filepath.Join(dir, "libibverbs.so.1"), source).CombinedOutput()
	require.NoError(t, err, string(out))
	self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEventIsHeld$")
	self.Env = append(os.Environ(), eventsVariable+"=1", "LD_LIBRARY_PATH="+dir)
	out, err = self.CombinedOutput()
	require.NoError(t, err, string(out))
}

func eventIsHeld(t *testing.T) {
	require.NoError(t, ibv.Load())
	never, hold, err := os.Pipe()
	require.NoError(t, err)
	defer hold.Close()
	d := &domain{sched: sched.Goroutine(1), async: never, peers: make([]peer, 1)}
	d.peers[0].changed = make(chan struct{})
	d.table.init(1)
	p := &pair{d: d, peer: &d.peers[0], ring: newRing(1), ending: make(chan struct{})}
	require.NoError(t, ibv.CreateQP(&d.nic, &p.qp))
	require.NoError(t, d.table.reserve(p, d))
	d.table.add(p)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.watchDevice()
	}()
	<-p.ending
	d.post.mu.Lock() // until it has ended altogether
	held := p.drained.Load()
	d.post.mu.Unlock()
	require.True(t, held, "its queue pair could have been ended and another one made while it was looked for")
	require.Eventually(t, func() bool { return ibv.DestroyQP(p.qp.Handle) == nil }, time.Minute, time.Millisecond, "nobody has acknowledged the event")
	d.closed.Store(true)
	require.NoError(t, never.Close())
	<-ended
}
