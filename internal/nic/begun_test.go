package nic

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// choosy is a NIC that reports an operation when it is told to.
type choosy struct {
	transport.Domain
	mu     sync.Mutex
	all    bool // everything is reported
	free   map[uint64]bool
	parked []transport.Completion
}

func newChoosy(t *testing.T) (*world, *choosy) {
	d := &choosy{free: map[uint64]bool{}}
	w := newWorld(t, 2, transporttest.FabricConfig{}, func(x transport.Domain) transport.Domain { d.Domain = x; return d })
	require.NoError(t, w.n[0].Connect("put", 1))
	return w, d
}

func (d *choosy) Poll(cq []transport.Completion) (int, error) {
	var more [4]transport.Completion
	k, err := d.Domain.Poll(more[:])
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parked = append(d.parked, more[:k]...)
	still, some := d.parked[:0], 0
	for _, c := range d.parked {
		if some < len(cq) && (d.all || d.free[c.Cookie]) {
			delete(d.free, c.Cookie)
			cq[some] = c
			some++
		} else {
			still = append(still, c)
		}
	}
	d.parked = still
	return some, err
}

// report has a piece be reported at the next poll, or all of them.
func (d *choosy) report(ids ...int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		d.free[uint64(id)] = true
	}
	d.all = len(ids) == 0
}

// TestPast: what was begun up to a number is over when the last of it is, whatever has begun since, and whatever of that is over.
func TestPast(t *testing.T) {
	w, d := newChoosy(t)
	n := w.n[0]
	a := w.put(t, 1, 0, 1)
	f := n.Began(1)
	mark := n.Begun(1)
	b, c := w.put(t, 1, 8, 2), w.put(t, 1, 16, 3)
	after := func(past bool, ids ...int32) {
		t.Helper()
		d.report(ids...)
		over := n.ends[1].over()
		w.until(t, func() bool { return n.ends[1].over() == over+uint64(len(ids)) })
		require.Equal(t, past, n.Past(1, mark))
	}
	require.False(t, n.Past(1, mark))
	require.True(t, n.Past(1, 0))
	after(false, b) // one is over, which is not a's
	after(false, c) // as many as were begun then
	e := w.put(t, 1, 24, 4)
	after(false, a) // the flight is not
	n.Ended(1, f, nil)
	require.True(t, n.Past(1, mark))
	require.False(t, n.Past(1, n.Begun(1)))
	after(true, e)
	require.False(t, n.Pending(1))
	require.Empty(t, n.ends[1].flights)

	late := w.put(t, 1, 0, 5)
	require.True(t, n.Past(1, mark), "it stays so")
	after(true, late)
	require.True(t, n.Idle())
}

// TestFlushOutlivesPuts (N11): a flush, and a wait for this rank's memory, end though another goroutine always has something under way to the rank.
func TestFlushOutlivesPuts(t *testing.T) {
	w, d := newChoosy(t)
	n := w.n[0]
	stop := make(chan struct{})
	var putter sync.WaitGroup
	begun := make(chan struct{})
	putter.Go(func() {
		last := w.put(t, 1, 0, 1)
		close(begun)
		for k := uint64(2); ; k++ {
			before := n.Begun(1)
			next := w.put(t, 1, 0, k)
			d.report(last)
			last = next
			select {
			case <-stop:
				d.report()
				return
			default:
			}
			for !n.Past(1, before) {
				n.Progress()
			}
		}
	})
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	for k := range uint64(200) {
		id := w.put(t, 1, 8, k)
		d.report(id)
		if k%2 == 0 {
			require.NoError(t, n.Flush(ctx, 1))
		} else {
			require.NoError(t, n.Land(ctx, "flush-local", 1))
		}
		require.Equal(t, k, w.mem[1].Word64(8).Load())
	}
	require.True(t, n.Pending(1))
	close(stop)
	putter.Wait()
	require.NoError(t, n.Flush(t.Context(), 1))
	require.True(t, n.Idle())
}
