package window_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

const (
	gigabyte = 1 << 30
	// pinLimit is what a rank may register in all: the usual limit of locked memory.
	pinLimit = 8 << 20
)

// wholeFlag has TestGigabyte use more of its memory.
var wholeFlag = flag.Bool("window.whole", false, "TestGigabyte uses twenty times as many places")

// TestGigabyte: a window of 1 GiB a rank, made over a slice and on the symmetric heap, of which a rank may register 8 MiB, can do
// what any window can, everywhere in it. The ranks are processes; where the process's own limit of locked memory is no higher
// than that it is the kernel that enforces it.
func TestGigabyte(t *testing.T) {
	for _, p := range pgastest.ProcPaths() {
		if p.Name == "mapped" {
			continue // nothing is registered
		}
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 4 * time.Minute
			few := testing.Short() && os.Getenv(pgastest.PathsVariable) == "" // each NIC and each kind of window, but not all four
			if !lockedLow() {
				p.Env = append(p.Env, fmt.Sprintf("PGAS_MAX_PINNED=%d", pinLimit))
			}
			if !few || p.Name == "soft" {
				t.Run("create", func(t *testing.T) {
					pgastest.RunProcsConfig(t, 2, p.Procs, func(ctx context.Context, w *pgas.World) error {
						win, err := window.CreateConfig(ctx, w.Team(), make([]uint64, words), window.Config{Epochs: true})
						return within(ctx, w, win, err)
					})
				})
			}
			if !few || p.Name == "tcp" {
				t.Run("allocate", func(t *testing.T) {
					pgastest.RunProcsConfig(t, 2, p.Procs, func(ctx context.Context, w *pgas.World) error {
						win, err := window.AllocateConfig[uint64](ctx, w.Team(), words, window.Config{Epochs: true})
						return within(ctx, w, win, err)
					})
				})
			}
		})
	}
}

// within uses a window, and checks that what was registered stayed within the limit and went through firehoses.
func within(ctx context.Context, w *pgas.World, win *window.Window[uint64], err error) error {
	if err != nil {
		return err
	}
	if err := anywhere(ctx, w, win); err != nil {
		return err
	}
	locked, err := lockedKiB()
	if err == nil && locked > pinLimit>>10 {
		err = fmt.Errorf("%d KiB are locked, at most %d may be", locked, pinLimit>>10)
	}
	origin, _ := w.Team().Engine().Firehoses()
	if origin.Misses == 0 || origin.Moves == 0 || origin.Hits == 0 {
		err = errors.Join(err, fmt.Errorf("nothing went through firehoses: %+v", origin))
	}
	return errors.Join(err, win.Free(ctx))
}

// lockedLow reports whether the kernel lets this process lock no more than pinLimit.
func lockedLow() bool {
	var l unix.Rlimit
	return unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l) == nil && l.Max <= pinLimit && os.Geteuid() != 0
}

// lockedKiB is what the kernel counts as locked or pinned in this process.
func lockedKiB() (kib int, err error) {
	text, err := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		var n int
		for _, name := range []string{"VmLck", "VmPin"} {
			if k, _ := fmt.Sscanf(line, name+": %d kB", &n); k == 1 {
				kib += n
			}
		}
	}
	return kib, err
}

// anywhere does all that a window can do, at places all over it, and checks the outcome.
func anywhere(ctx context.Context, w *pgas.World, win *window.Window[uint64]) error {
	for _, part := range []struct {
		name string
		do   func(context.Context, *pgas.World, *window.Window[uint64]) error
	}{
		{"puts and gets", farPuts},
		{"runs", farRuns},
		{"atomics", farAtomics},
		{"signals", farSignals},
		{"epochs", farEpochs},
	} {
		began := w.Elapsed()
		if err := part.do(ctx, w, win); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		if w.Rank() == 0 {
			fmt.Printf("%s: %v\n", part.name, (w.Elapsed() - began).Round(time.Millisecond))
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
	}
	return nil
}

const words = gigabyte / 8

// ours are the places of one rank in everybody's window: words of every second page or so, none of them another rank's.
func ours(w *pgas.World, rank int) (from, n int) {
	n = words / w.Size()
	return rank * n, n
}

func scale(n int) int {
	if *wholeFlag {
		return 20 * n
	}
	return n
}

// farPuts puts blocks of all sizes by all calls, reads them back, and the target looks at them itself.
func farPuts(ctx context.Context, w *pgas.World, win *window.Window[uint64]) error {
	type block struct{ at, n int }
	plan := func(rank int) (out []block) {
		from, n := ours(w, rank)
		rng := rand.New(rand.NewPCG(uint64(rank), 1))
		for range scale(60) {
			size := 1 + rng.IntN(1<<rng.IntN(17)) // up to 512 KiB
			out = append(out, block{from + rng.IntN(n-size), size})
		}
		return append(out, block{from, 9}, block{from + n - 9, 9}) // the very ends
	}
	value := func(rank, at int) uint64 { return uint64(rank+1)<<56 ^ uint64(at)*0x9e3779b97f4a7c15 }
	me, peer := w.Rank(), (w.Rank()+1)%w.Size()
	for i, b := range plan(me) {
		src, back := make([]uint64, b.n), make([]uint64, b.n)
		for k := range src {
			src[k] = value(me, b.at+k)
		}
		var err error
		if i%2 == 0 {
			var h window.Handle
			if h, err = win.PutNB(peer, b.at, src); err == nil {
				err = h.Wait(ctx)
			}
		} else {
			err = win.Put(peer, b.at, src)
		}
		if err == nil {
			err = win.Flush(peer)
		}
		if err == nil && i%3 == 0 {
			var h window.Handle
			if h, err = win.GetNB(peer, b.at, back); err == nil {
				err = h.Wait(ctx)
			}
		} else if err == nil {
			err = win.Get(peer, b.at, back)
		}
		if err != nil {
			return fmt.Errorf("%d words at %d: %w", b.n, b.at, err)
		}
		if !slices.Equal(src, back) {
			return fmt.Errorf("%d words at %d came back as others", b.n, b.at)
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	writer := (me + w.Size() - 1) % w.Size()
	for _, b := range plan(writer) {
		for k := range b.n {
			if got := win.Local()[b.at+k]; got != value(writer, b.at+k) {
				return fmt.Errorf("word %d of %d at %d is %#x", k, b.n, b.at, got)
			}
		}
	}
	return nil
}

// farRuns transfers by steps, indices and to several targets.
func farRuns(_ context.Context, w *pgas.World, win *window.Window[uint64]) error {
	n := scale(200)
	me, peer := w.Rank(), (w.Rank()+1)%w.Size()
	from, size := ours(w, me)
	rng := rand.New(rand.NewPCG(uint64(me), 2))
	src, back := make([]uint64, n), make([]uint64, n)
	disps := make([]int, n)
	for i := range src {
		src[i], disps[i] = rng.Uint64(), from+size/n*i+rng.IntN(size/n)
	}
	step := size / n
	at := func(i int) (target, disp int) { return i % w.Size(), disps[i] }
	for name, f := range map[string][2]func() error{
		"strided": {
			func() error { return win.PutStrided(peer, from, step, src, 1, n) },
			func() error { return win.GetStrided(peer, from, step, back, 1, n) },
		},
		"indexed": {func() error { return win.PutIndexed(peer, disps, src) }, func() error { return win.GetIndexed(peer, disps, back) }},
		"scatter": {func() error { return win.Scatter(src, at) }, func() error { return win.Gather(back, at) }},
		"section": {
			func() error { return win.PutSection(peer, from, src, window.Packed(n/10, 10, size/n)) },
			func() error { return win.GetSection(peer, from, back, window.Packed(n/10, 10, size/n)) },
		},
	} {
		clear(back)
		if err := errors.Join(f[0](), win.FlushAll(), f[1]()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !slices.Equal(src, back) {
			return fmt.Errorf("%s: other words came back", name)
		}
	}
	return nil
}

// farAtomics has all ranks count in the same words, with every kind of atomic.
func farAtomics(ctx context.Context, w *pgas.World, win *window.Window[uint64]) error {
	const rounds = 6
	places := []int{5, words/2 + 4099, words - 3}
	base := make([]uint64, len(places))
	for i, at := range places {
		base[i] = win.Local()[at]
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	for target := range w.Size() {
		for _, at := range places {
			for range rounds {
				if _, err := window.FetchAdd(win, target, at, 1); err != nil {
					return err
				}
				if err := window.Accumulate(win, target, at, []uint64{10}, pgsync.Sum); err != nil {
					return err
				}
				old := make([]uint64, 1)
				if err := window.GetAccumulate(win, target, at, []uint64{100}, old, pgsync.Sum); err != nil {
					return err
				}
				for seen := old[0]; ; {
					now, err := window.CompareSwap(win, target, at, seen, seen+1000)
					if err != nil {
						return err
					}
					if now == seen {
						break
					}
					seen = now
				}
			}
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	for i, at := range places {
		if got, want := win.Local()[at]-base[i], uint64(rounds*w.Size()*1111); got != want {
			return fmt.Errorf("word %d has grown by %d, want %d", at, got, want)
		}
	}
	return nil
}

// farSignals: whoever sees the signal sees the data.
func farSignals(ctx context.Context, w *pgas.World, win *window.Window[uint64]) error {
	sigs, err := pgsync.NewSignals(ctx, w.Team(), 2)
	if err != nil {
		return err
	}
	data, ack := sigs.Signal(0), sigs.Signal(1)
	next, prev := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
	src := make([]uint64, 700)
	for round := range uint64(scale(10)) {
		for i := range src {
			src[i] = round + 1
		}
		at := int(round*12_345_677) % (words - len(src))
		if err := win.PutSignal(next, at, src, data, round+1); err != nil {
			return err
		}
		if _, err := data.WaitUntil(ctx, pgsync.GreaterOrEqual, round+1); err != nil {
			return err
		}
		for i, v := range win.Local()[at : at+len(src)] {
			if v != round+1 {
				return fmt.Errorf("round %d: word %d is %d though the signal has come", round, i, v)
			}
		}
		if err := ack.Set(prev, round+1); err != nil {
			return err
		}
		if _, err := ack.WaitUntil(ctx, pgsync.Equal, round+1); err != nil {
			return err
		}
	}
	return sigs.Free(ctx)
}

// farEpochs counts under locks, and puts in epochs of the target's.
func farEpochs(ctx context.Context, w *pgas.World, win *window.Window[uint64]) error {
	const rounds, at = 5, words / 3
	word := make([]uint64, 1)
	before := win.Local()[at]
	if err := win.Fence(ctx); err != nil {
		return err
	}
	for range rounds {
		if err := win.Lock(ctx, 0, window.LockExclusive); err != nil {
			return err
		}
		if err := win.Get(0, at, word); err != nil {
			return err
		}
		word[0]++
		if err := errors.Join(win.Put(0, at, word), win.Unlock(0)); err != nil {
			return err
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	if got := win.Local()[at] - before; w.Rank() == 0 && got != uint64(rounds*w.Size()) {
		return fmt.Errorf("%d counts under the lock, want %d", got, rounds*w.Size())
	}
	peer := []int{(w.Rank() + 1) % w.Size()}
	from := []int{(w.Rank() + w.Size() - 1) % w.Size()}
	for round := range rounds {
		if err := errors.Join(win.Post(from), win.Start(ctx, peer)); err != nil {
			return err
		}
		far := words/2 + round*5_000_011
		if err := errors.Join(win.Put(peer[0], far, []uint64{uint64(round) + 7}), win.Complete(), win.Wait(ctx)); err != nil {
			return err
		}
		if got := win.Local()[far]; got != uint64(round)+7 {
			return fmt.Errorf("round %d: %d after the epoch", round, got)
		}
	}
	return nil
}

// TestGigabyteOfGoroutines is the same with ranks of one process, over a NIC that can be watched: at no time is more
// registered than may be.
func TestGigabyteOfGoroutines(t *testing.T) {
	c := tight()
	c.Fabric.MaxPinned = pinLimit
	pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
		win, err := window.CreateConfig(ctx, w.Team(), make([]uint64, words), window.Config{Epochs: true})
		if err != nil {
			return err
		}
		if err := anywhere(ctx, w, win); err != nil {
			return err
		}
		_, served := w.Team().Engine().Firehoses()
		require.Positive(t, served.Deregistered)
		require.LessOrEqual(t, served.Peak*w.Team().Engine().FirehoseUnit(), int64(pinLimit))
		s, _ := w.Registered()
		require.LessOrEqual(t, s.PeakBytes, int64(pinLimit))
		return win.Free(ctx)
	})
}
