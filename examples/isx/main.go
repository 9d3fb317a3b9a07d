// Command isx sorts integers that are spread over all ranks, in the way of the benchmark ISx: keys uniformly random,
// a bucket of keys for each rank, everyone sends everyone else's keys, and each rank sorts its bucket.
//
// What it shows: an exchange of all with all without receivers. Who has keys for a rank reserves room in that rank's
// inbox by a fetch-and-add on its cursor, and puts the keys there. The owner is not asked: the atomic operation is what
// keeps two senders from the same room. It only has to know when all have sent, which is what the fence is for.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

const most = 1 << 28 // keys on a rank, and how many values keys can have

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		return run(ctx, w, os.Args[1:], os.Stdout)
	})
}

// run is the whole program as one rank lives it.
func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("isx", flag.ContinueOnError)
	count := flags.Int("keys", 1<<20, "keys on each rank in the beginning")
	limit := flags.Int("max", 1<<24, "keys are below this")
	if w.Rank() != 0 {
		flags.SetOutput(io.Discard) // one usage text is enough
	}
	if err := flags.Parse(args); err == flag.ErrHelp {
		return nil
	} else if err != nil {
		return err
	}
	if *count < 1 || *count > most || *limit < w.Size() || *limit > most || flags.NArg() > 0 {
		return fmt.Errorf("-keys %d -max %d and arguments %q: needed 1 to %d keys, a max from %d (a value for each rank) to %d, "+
			"and nothing else", *count, *limit, flags.Args(), most, w.Size(), most)
	}
	random := rand.New(rand.NewPCG(1, uint64(w.Rank())))
	keys := make([]uint32, *count)
	for i := range keys {
		keys[i] = random.Uint32N(uint32(*limit))
	}
	start := time.Now()
	width := (*limit + w.Size() - 1) / w.Size() // rank r gets the keys in [r*width, (r+1)*width)
	mine, err := exchange(ctx, w, keys, width)
	if err != nil {
		return err
	}
	sent := time.Since(start)
	if w.Rank() == 0 && sent > 2*time.Second {
		fmt.Fprintf(os.Stderr, "isx: all keys are in their buckets after %v, now sorting\n", sent)
	}
	sortBucket(mine, uint32(w.Rank()*width), width)
	if err := w.Barrier(ctx); err != nil { // the work is done when the slowest has done its part
		return err
	}
	took := time.Since(start)
	if err := verify(ctx, w, keys, mine, w.Rank()*width, width); err != nil {
		return err
	}
	if total := *count * w.Size(); w.Rank() == 0 {
		fmt.Fprintf(out, "%d keys on %d ranks: exchanged in %v, sorted in %v, %.1f million keys/s\nverified: sorted, and no key lost\n",
			total, w.Size(), sent.Round(time.Microsecond), took.Round(time.Microsecond), float64(total)/took.Seconds()/1e6)
	}
	return nil
}

// exchange gives every key to the rank of its bucket and returns what this rank got.
func exchange(ctx context.Context, w *pgas.World, keys []uint32, width int) ([]uint32, error) {
	buckets, sizes, totals := make([][]uint32, w.Size()), make([]int64, w.Size()), make([]int64, w.Size())
	for _, k := range keys {
		b := int(k) / width
		buckets[b] = append(buckets[b], k)
		sizes[b]++
	}
	// How much each rank will get from all, so that the inboxes are as long as the fullest must be.
	if err := pgsync.AllReduce(ctx, w.Team(), totals, sizes, pgsync.Sum); err != nil {
		return nil, err
	}
	inbox, err := window.Allocate[uint32](ctx, w.Team(), int(slices.Max(totals)))
	if err != nil {
		return nil, err
	}
	cursor, err := window.Allocate[int64](ctx, w.Team(), 1) // how much of the inbox is taken
	if err != nil {
		return nil, err
	}
	for i := range w.Size() {
		to := (w.Rank() + i) % w.Size() // each rank begins with another one, so that they do not crowd
		at, err := window.FetchAdd(cursor, to, 0, sizes[to])
		if err != nil {
			return nil, err
		}
		if err := inbox.Put(to, int(at), buckets[to]); err != nil {
			return nil, err
		}
	}
	return inbox.Local()[:totals[w.Rank()]], inbox.Fence(ctx)
}

// sortBucket sorts keys in [lo, lo+width) by counting how often each occurs.
func sortBucket(keys []uint32, lo uint32, width int) {
	counts := make([]uint32, width)
	for _, k := range keys {
		counts[k-lo]++
	}
	rest := keys
	for i, c := range counts {
		for j := range rest[:c] {
			rest[j] = lo + uint32(i)
		}
		rest = rest[c:]
	}
}

// tally returns the number of keys and the sum of their squares, which no lost or changed key leaves as it was.
func tally(keys []uint32) (number, sum uint64) {
	for _, k := range keys {
		sum += uint64(k) * uint64(k)
	}
	return uint64(len(keys)), sum
}

// verify fails on every rank unless each has its own keys in ascending order, and all together have those of before.
func verify(ctx context.Context, w *pgas.World, before, mine []uint32, lo, width int) error {
	all := make([]uint64, 5)
	all[0], all[1] = tally(before)
	all[2], all[3] = tally(mine)
	if n := len(mine); !slices.IsSorted(mine) || n > 0 && (int(mine[0]) < lo || int(mine[n-1]) >= lo+width) {
		all[4] = 1
	}
	if err := pgsync.AllReduce(ctx, w.Team(), all, all, pgsync.Sum); err != nil {
		return err
	}
	if all[4] > 0 || all[0] != all[2] || all[1] != all[3] {
		return fmt.Errorf("wrong: %d ranks out of order, %d keys became %d, the sum of their squares %d became %d", all[4], all[0], all[2], all[1], all[3])
	}
	return nil
}
