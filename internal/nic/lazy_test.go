package nic

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// late is a NIC that tells of the end of what is lazy when it is asked to, and not before.
type late struct {
	transport.Domain
	mu       sync.Mutex
	lazy     map[uint64]uint32      // in flight: their ranks, by cookie
	over     []transport.Completion // of what is lazy, and not told yet
	told     []transport.Completion // likewise, to be told now
	hastened []uint32               // for which ranks
}

func (d *late) Post(ops []transport.Op) (int, error) {
	d.mu.Lock()
	for i := range ops {
		if ops[i].Flags&transport.FlagLazy != 0 {
			d.lazy[ops[i].Cookie] = ops[i].EP.Index
		}
	}
	d.mu.Unlock()
	return d.Domain.Post(ops)
}

func (d *late) Poll(cq []transport.Completion) (n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var one [1]transport.Completion
	for {
		if n, err = d.Domain.Poll(one[:]); n == 0 || err != nil {
			break
		}
		if _, lazy := d.lazy[one[0].Cookie]; !lazy { // and all before it
			d.tell(one[0].EP)
			d.told = append(d.told, one[0])
			break
		}
		delete(d.lazy, one[0].Cookie)
		d.over = append(d.over, one[0])
	}
	n = copy(cq, d.told)
	d.told = d.told[n:]
	return n, err
}

func (d *late) Hasten(ep transport.EP) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hastened = append(d.hastened, ep.Index)
	maps.DeleteFunc(d.lazy, func(_ uint64, rank uint32) bool { return rank == ep.Index }) // what is on its way still
	d.tell(ep)
}

// tell has what is over of an endpoint told.
func (d *late) tell(ep transport.EP) {
	d.over = slices.DeleteFunc(d.over, func(c transport.Completion) bool {
		if c.EP.Index == ep.Index {
			d.told = append(d.told, c)
		}
		return c.EP.Index == ep.Index
	})
}

// newLate is newWorld whose rank 0 has a NIC that is late.
func newLate(t *testing.T, n int) (*world, *late) {
	d := &late{lazy: map[uint64]uint32{}}
	w := newWorld(t, n, transporttest.FabricConfig{}, func(inner transport.Domain) transport.Domain { d.Domain = inner; return d })
	w.serve(t)
	for r := range n {
		require.NoError(t, w.n[0].Connect("connect", r))
	}
	return w, d
}

// flag sets a word of rank's memory, and reports whether that was lazy.
func (w *world) flag(rank int, v uint64) (lazy bool, err error) {
	n := w.n[0]
	flags := n.Lazy(rank)
	op := n.TryLay(new(Tally), rank, transport.OpWrite, transport.FlagInline|flags, 8, w.mem[rank].Addr(), w.rkey[rank])
	op[0].SGE[0].Mem.Word64(0).Store(v)
	return flags != 0, n.SendLazy("flag", op)
}

// TestLazy: flags are lazy as long as nobody waits, and those to a rank are hastened by who waits for it, after some by the next, and by nobody else.
func TestLazy(t *testing.T) {
	w, d := newLate(t, 3)
	n := w.n[0]
	for k := range lazyEach {
		lazy, err := w.flag(1, uint64(k))
		require.True(t, lazy)
		require.NoError(t, err)
	}
	w.until(t, func() bool { d.mu.Lock(); defer d.mu.Unlock(); return len(d.over) == lazyEach })
	require.True(t, n.Pending(1))
	_, err := w.await(2, 0, 0)
	require.NoError(t, err)
	require.Empty(t, d.hastened, "who waits for another rank")
	require.NoError(t, n.Flush(t.Context(), 1))
	require.Equal(t, []uint32{1}, d.hastened)
	require.False(t, n.Pending(1))
	require.NoError(t, n.Flush(t.Context(), 1))
	require.Equal(t, []uint32{1}, d.hastened, "nothing is lazy any more")

	for k := range 2 * lazyEach { // the first of them that is not lazy has those before it told
		lazy, err := w.flag(2, uint64(k))
		require.NoError(t, err)
		require.Equal(t, k != lazyEach, lazy, "flag %d", k)
		if k >= lazyEach {
			w.until(t, func() bool { return n.ends[2].pending() == uint64(k-lazyEach) })
		}
	}
	require.Equal(t, []uint32{1}, d.hastened)
	n.pollers.Add(1)
	lazy, err := w.flag(2, 7)
	n.pollers.Add(-1)
	require.NoError(t, err)
	require.False(t, lazy, "somebody waits")
	require.NoError(t, n.WaitUntil("all", -1, func() bool { return !n.Pending(2) }))
	require.True(t, n.Idle())
	require.EqualValues(t, 7, w.mem[2].Word64(0).Load())
	require.Zero(t, testing.AllocsPerRun(10, func() { n.Lazy(1) }))
}

// TestLazyHeldBack: what is lazy and held back goes with the flag behind it, and holds up nobody who waits before there is one.
func TestLazyHeldBack(t *testing.T) {
	w, d := newLate(t, 2)
	n := w.n[0]
	ahead := func(v uint64) {
		op := n.TryLay(new(Tally), 1, transport.OpWrite, transport.FlagInline|n.Lazy(1), 8, w.mem[1].Addr()+8, w.rkey[1])
		op[0].SGE[0].Mem.Word64(0).Store(v)
		require.NoError(t, n.SendLater("ahead", op))
	}
	for v := uint64(1); v < 10; v++ {
		ahead(v)
		require.Equal(t, 1, n.HeldBack())
		if v%2 == 0 {
			_, err := w.flag(1, v)
			require.NoError(t, err)
			require.Zero(t, n.HeldBack())
		}
		require.NoError(t, n.Flush(t.Context(), 1))
		require.Equal(t, v, w.mem[1].Word64(8).Load())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	require.NotEmpty(t, d.hastened)
}

// TestLazyRanks: with many ranks at a time not all that is in flight is lazy.
func TestLazyRanks(t *testing.T) {
	w, _ := newLate(t, lazyRanks+3)
	for r := range w.n[1:] {
		lazy, err := w.flag(1+r, 1)
		require.NoError(t, err)
		require.Equal(t, r < lazyRanks, lazy)
	}
	for r := range w.n[1:] {
		require.NoError(t, w.n[0].Flush(t.Context(), 1+r))
	}
	require.Zero(t, w.n[0].lazy.Load())
}

// TestLazyAtOnce: who flushes is not held up by flags that others set meanwhile.
func TestLazyAtOnce(t *testing.T) {
	w, d := newLate(t, 2)
	n, stop := w.n[0], make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for k := uint64(0); ; k++ {
			select {
			case <-stop:
				return
			default:
			}
			if flags := n.Lazy(1); k%4 != 0 || flags != 0 {
				op := n.TryLay(new(Tally), 1, transport.OpWrite, transport.FlagInline|flags, 8, w.mem[1].Addr(), w.rkey[1])
				if op == nil { // no piece is free
					continue
				}
				mem.Publish(op[0].SGE[0].Mem.Word64(0), k)
				_ = n.SendLazy("flag", op)
			}
			if k%8 == 7 {
				time.Sleep(20 * time.Microsecond)
			}
		}
	})
	hastened := func() int { d.mu.Lock(); defer d.mu.Unlock(); return len(d.hastened) }
	for hastened() < 300 {
		ctx, cancel := context.WithTimeout(t.Context(), patient)
		require.NoError(t, n.Land(ctx, "flush", 1))
		cancel()
	}
	close(stop)
	wg.Wait()
	require.NoError(t, n.Flush(t.Context(), 1))
}

// TestLazyOverBreaks: what was lazy is posted again, and is lazy no more.
func TestLazyOverBreaks(t *testing.T) {
	d := &late{lazy: map[uint64]uint32{}}
	b := &brittle{}
	w := newWorld(t, 2, transporttest.FabricConfig{}, func(inner transport.Domain) transport.Domain { b.Domain = inner; d.Domain = b; return d })
	w.serve(t)
	require.NoError(t, w.n[0].Connect("connect", 1))
	for v := uint64(1); v < 20; v++ {
		_, err := w.flag(1, v)
		require.NoError(t, err)
		b.cut(t, 0, nil)
		require.NoError(t, w.n[0].Flush(t.Context(), 1))
		require.Equal(t, v, w.mem[1].Word64(0).Load())
		require.NoError(t, w.n[0].Connect("connect", 1))
	}
}
