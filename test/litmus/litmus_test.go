// Package litmus proves, in many rounds between processes, the orders that window/doc.go promises.
package litmus

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

var rounds = flag.Int("litmus.rounds", 1_000_000, "rounds of each litmus test")

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		*rounds /= 10
	}
	os.Exit(pgastest.Main(m))
}

// pair is what both ranks of a test have: a window for data and one for flags.
type pair struct {
	w     *pgas.World
	data  *window.Window[uint64]
	flags *window.Window[uint64]
	me    int
	other int
}

const block = 8 // words of one block of data

func newPair(ctx context.Context, w *pgas.World, words int) (*pair, error) {
	data, err := window.Allocate[uint64](ctx, w.Team(), words)
	if err != nil {
		return nil, err
	}
	flags, err := window.Allocate[uint64](ctx, w.Team(), 16)
	return &pair{w, data, flags, w.Rank(), 1 - w.Rank()}, err
}

// mapped runs f on two ranks that are processes and map each other's memory.
func mapped(t *testing.T, words int, f func(ctx context.Context, p *pair) error) {
	t.Helper()
	procs(t, pgastest.Procs{}, words, f)
}

// everywhere runs f on two ranks that are processes, on every path there is between processes; over NICs, where a round
// takes system calls and the other process's turn on a processor, with so many times fewer rounds.
func everywhere(t *testing.T, fewer int, words func(rounds int) int, f func(ctx context.Context, p *pair, rounds int) error) {
	t.Helper()
	for _, path := range pgastest.ProcPaths() {
		n := *rounds
		if path.Name != "mapped" {
			n /= fewer
		}
		if raceEnabled && path.Name != "mapped" {
			continue // data that is read while a NIC writes it is the point here, and a race to the detector
		}
		t.Run(path.Name, func(t *testing.T) {
			procs(t, path.Procs, words(n), func(ctx context.Context, p *pair) error { return f(ctx, p, n) })
		})
	}
}

func procs(t *testing.T, c pgastest.Procs, words int, f func(ctx context.Context, p *pair) error) {
	t.Helper()
	pgastest.RunProcsConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
		p, err := newPair(ctx, w, words)
		if err != nil {
			return err
		}
		if err := f(ctx, p); err != nil {
			return err
		}
		return w.Barrier(ctx)
	})
}

// exactly is that many words, whatever the rounds.
func exactly(words int) func(int) int { return func(int) int { return words } }

// read is the reader's half of message passing: whenever the flag says n, all data says at least n, and neither goes
// back.
func (p *pair) read(ctx context.Context, flag func() (uint64, error), last uint64) error {
	local := p.data.Local()
	var before, seen uint64
	for seen < last {
		n, err := flag()
		if err != nil {
			return err
		}
		if n < seen {
			return fmt.Errorf("the flag went back from %d to %d", seen, n)
		}
		seen = n
		for i := range local {
			if d := atomic.LoadUint64(&local[i]); d < n {
				return fmt.Errorf("the flag says %d, word %d says %d", n, i, d)
			} else if i == 0 {
				if d < before {
					return fmt.Errorf("word 0 went back from %d to %d", before, d)
				}
				before = d
			}
		}
	}
	return nil
}

func mustView(w *window.Window[uint64], target int) window.View[uint64] {
	v, ok := w.View(target)
	if !ok {
		panic("the ranks of one node map each other")
	}
	return v
}

// flag reads a word of this rank's flags. Whoever looks in vain lets others run: this rank's NIC may be among them.
func (p *pair) flag() func() (uint64, error) {
	word, last, vain := &p.flags.Local()[0], uint64(0), 0
	return func() (uint64, error) {
		n := atomic.LoadUint64(word)
		if vain++; n != last {
			last, vain = n, 0
		} else if vain%64 == 0 {
			runtime.Gosched()
		}
		return n, nil
	}
}

// TestMessagePassingByViews: stores, Order, a store.
func TestMessagePassingByViews(t *testing.T) {
	mapped(t, block, func(ctx context.Context, p *pair) error {
		last := uint64(*rounds)
		if p.me == 1 {
			return p.read(ctx, p.flag(), last)
		}
		data, flags := mustView(p.data, 1), mustView(p.flags, 1)
		for n := uint64(1); n <= last; n++ {
			for i := range block {
				data.Store(i, n)
			}
			data.Order()
			flags.Store(0, n)
		}
		return nil
	})
}

// TestMessagePassingByPuts: a put, Order, a put to another window.
func TestMessagePassingByPuts(t *testing.T) {
	everywhere(t, 50, exactly(block), func(ctx context.Context, p *pair, rounds int) error {
		last := uint64(rounds)
		if p.me == 1 {
			return p.read(ctx, p.flag(), last)
		}
		src := make([]uint64, block)
		for n := uint64(1); n <= last; n++ {
			for i := range src {
				src[i] = n
			}
			if err := p.data.Put(1, 0, src); err != nil {
				return err
			}
			if err := p.data.Order(1); err != nil {
				return err
			}
			if err := p.flags.Put(1, 0, src[:1]); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestPutSignal: whoever sees the signal sees the data, also where a NIC promises no order of bytes within one write, as
// soft and tcp do not: the signal is a write of its own.
func TestPutSignal(t *testing.T) {
	everywhere(t, 50, exactly(block), func(ctx context.Context, p *pair, rounds int) error {
		sigs, err := pgsync.NewSignals(ctx, p.w.Team(), 1)
		if err != nil {
			return err
		}
		last, sig := uint64(rounds), sigs.Signal(0)
		if p.me == 1 {
			var seen uint64
			return p.read(ctx, func() (uint64, error) {
				n, err := sig.WaitUntil(ctx, pgsync.Greater, seen)
				seen = n
				return n, err
			}, last)
		}
		src := make([]uint64, block)
		for n := uint64(1); n <= last; n++ {
			for i := range src {
				src[i] = n
			}
			if err := p.data.PutSignal(1, 0, src, sig, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestMessagePassingByStoreAndLoad: a put, Flush, a Store of the flag; whoever Loads the flag sees the data.
func TestMessagePassingByStoreAndLoad(t *testing.T) {
	everywhere(t, 500, exactly(block), func(ctx context.Context, p *pair, rounds int) error {
		last := uint64(rounds)
		if p.me == 1 {
			return p.read(ctx, func() (uint64, error) { return window.Load(p.flags, 1, 0) }, last)
		}
		src := make([]uint64, block)
		for n := uint64(1); n <= last; n++ {
			for i := range src {
				src[i] = n
			}
			if err := errors.Join(p.data.Put(1, 0, src), p.data.Flush(1), window.Store(p.flags, 1, 0, n)); err != nil {
				return err
			}
		}
		return p.flags.Flush(1)
	})
}

// storeBuffering has both ranks put to a word of their own round and then get the other's, and returns in how many
// rounds both got the old value. between is what stands between put and get.
func storeBuffering(ctx context.Context, p *pair, n int, between func(target int) error) (int, error) {
	flag := p.flag()
	announce := func(n uint64) error { return errors.Join(p.flags.Put(p.other, 0, []uint64{n}), p.flags.Flush(p.other)) }
	if v, ok := p.flags.View(p.other); ok { // as close together as can be
		there, here := window.Atomics(v), window.Atomics(mustView(p.flags, p.me))
		announce = func(n uint64) error { there.Store(0, n); return nil }
		flag = func() (uint64, error) { return here.Load(0), nil }
	}
	one, got := []uint64{1}, make([]uint64, 1)
	mine := make([]uint64, n)
	for i := range n {
		if err := announce(uint64(i + 1)); err != nil { // this rank is at round i+1
			return 0, err
		}
		for spin := 0; ; spin++ {
			if n, _ := flag(); n > uint64(i) {
				break
			}
			if spin > 1<<11 { // the other process may need this core
				time.Sleep(time.Microsecond)
				spin = 0
			}
		}
		if err := p.data.Put(p.other, i, one); err != nil {
			return 0, err
		}
		if err := between(p.other); err != nil {
			return 0, err
		}
		if err := p.data.Get(p.me, i, got); err != nil {
			return 0, err
		}
		mine[i] = got[0]
	}
	all := make([]uint64, 2*n)
	if err := pgsync.AllGather(ctx, p.w.Team(), all, mine); err != nil {
		return 0, err
	}
	both := 0
	for i := range n {
		if all[i] == 0 && all[n+i] == 0 {
			both++
		}
	}
	return both, nil
}

// TestStoreBuffering: after a flush a get comes after the put for all, so one of the two sees the other.
func TestStoreBuffering(t *testing.T) {
	everywhere(t, 400, func(n int) int { return n }, func(ctx context.Context, p *pair, rounds int) error {
		both, err := storeBuffering(ctx, p, rounds, p.data.Flush)
		if err == nil && both > 0 {
			err = fmt.Errorf("both ranks got the old value in %d of %d rounds", both, rounds)
		}
		return err
	})
}

// TestAtomicsAsLock: increments of a plain word under a lock made of compare-and-swap, with gets and puts inside.
func TestAtomicsAsLock(t *testing.T) {
	everywhere(t, 500, exactly(2), func(ctx context.Context, p *pair, rounds int) error {
		each := uint64(rounds / 2)
		word := make([]uint64, 1)
		for range each {
			for {
				old, err := window.CompareSwap(p.flags, 0, 1, 0, uint64(p.me+1))
				if err != nil {
					return err
				}
				if old == 0 {
					break
				}
			}
			if err := p.data.Get(0, 0, word); err != nil {
				return err
			}
			word[0]++
			if err := p.data.Put(0, 0, word); err != nil {
				return err
			}
			if err := p.data.Flush(0); err != nil {
				return err
			}
			if _, err := window.Swap(p.flags, 0, 1, 0); err != nil {
				return err
			}
		}
		return total(ctx, p, 2*each)
	})
}

// TestLock is the same under the library's lock.
func TestLock(t *testing.T) {
	everywhere(t, 500, exactly(2), func(ctx context.Context, p *pair, rounds int) error {
		lock, err := pgsync.NewLock(ctx, p.w.Team())
		if err != nil {
			return err
		}
		each := uint64(rounds / 2)
		word := make([]uint64, 1)
		for range each {
			if err := lock.Lock(ctx); err != nil {
				return err
			}
			if err := p.data.Get(1, 0, word); err != nil {
				return err
			}
			word[0]++
			if err := p.data.Put(1, 0, word); err != nil {
				return err
			}
			if err := lock.Unlock(); err != nil {
				return err
			}
		}
		if err := p.data.Fence(ctx); err != nil {
			return err
		}
		if err := p.data.Get(1, 0, word); err != nil {
			return err
		}
		if word[0] != 2*each {
			return fmt.Errorf("%d increments left %d", 2*each, word[0])
		}
		return nil
	})
}

// total checks rank 0's first word.
func total(ctx context.Context, p *pair, want uint64) error {
	if err := p.data.Fence(ctx); err != nil {
		return err
	}
	word := make([]uint64, 1)
	if err := p.data.Get(0, 0, word); err != nil {
		return err
	}
	if word[0] != want {
		return fmt.Errorf("%d increments left %d", want, word[0])
	}
	return nil
}

// TestStoreBufferingShows: without the flush the outcome does happen, so the test above can fail.
func TestStoreBufferingShows(t *testing.T) {
	if raceEnabled {
		return // a put and a get load a word atomically each, for which the detector's own code has the processor empty its store buffer
	}
	r, out := pgastest.StartProcs(t, 2, pgastest.Procs{}, 1, func(ctx context.Context, w *pgas.World) error {
		n, both := min(*rounds, 200_000), 0
		for range 50 { // where others need a core too, the ranks seldom run at the same time
			p, err := newPair(ctx, w, n)
			if err != nil {
				return err
			}
			if both, err = storeBuffering(ctx, p, n, p.data.Order); err != nil {
				return err
			}
			if err := errors.Join(p.data.Free(ctx), p.flags.Free(ctx)); err != nil {
				return err
			}
			if both > 0 {
				break
			}
		}
		if w.Rank() == 0 {
			fmt.Printf("both got the old value in %d of %d rounds\n", both, n)
		}
		return w.Barrier(ctx)
	})
	require.Zero(t, r.Code, out)
	require.Contains(t, out, "both got the old value in")
	require.NotContains(t, out, " in 0 of ", "the litmus test above proves nothing on this machine")
}
