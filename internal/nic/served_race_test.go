//go:build race

package nic

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// flag is set and looked at as by another process: the detector does not see it.
type flag uint32

//go:norace
func (f *flag) set() { *f = 1 }

//go:norace
func (f *flag) await() {
	for *f == 0 {
		runtime.Gosched()
	}
}

// slowly is a NIC whose Post returns when what it has sent has had its effect.
type slowly struct {
	transport.Domain
	sent, done flag
}

func (d *slowly) Post(ops []transport.Op) (int, error) {
	n, err := d.Domain.Post(ops)
	d.sent.set()
	d.done.await()
	return n, err
}

// TestServedBeforeItIsAnswered: what a handler has changed comes, for the race detector, too, before what this rank does when it has learned, in a way that the
// detector does not see, that the one who asked has the answer.
func TestServedBeforeItIsAnswered(t *testing.T) {
	d := &slowly{}
	w := newWorld(t, 2, transporttest.FabricConfig{}, func(x transport.Domain) transport.Domain { d.Domain = x; return d })
	changed := 0
	w.to[0].handled = func() { changed = 7 }
	seen := make(chan int)
	go func() {
		d.sent.await()
		w.n[0].sched.Seen()
		got := changed
		d.done.set()
		seen <- got
	}()
	id, err := w.n[1].Acquire("ask", 0, false)
	require.NoError(t, err)
	asked := make(chan error)
	go func() {
		asked <- w.n[1].Ask("ask", id, echo, [4]uint64{}, mem.Of([]byte{1}))
	}()
	var got int
	w.until(t, func() bool {
		select {
		case got = <-seen:
			return true
		default:
			return false
		}
	})
	require.Equal(t, 7, got)
	require.NoError(t, <-asked)
	w.until(t, w.n[1].Idle)
}
