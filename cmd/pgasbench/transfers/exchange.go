package transfers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/internal/paired"
	"gopgas/internal/plot"
	"gopgas/pgas"
	"gopgas/window"
)

// The exchange of examples/isx (the paper: IS, class C, 8 processes, 10 iterations).
const (
	sortKeys    = 1 << 20
	sortMax     = 1 << 20 // keys are below this
	sortBuckets = 8
	sortRounds  = 10
)

var exchangeVariants = []variant{
	{name: "left pinned", eager: "inline", bulk: "register"},
	{name: "superpipeline", eager: "inline", bulk: "superpipe"},
	{name: "auto", eager: "auto", bulk: "auto"},
	{name: "left pinned again", eager: "inline", bulk: "register"},
}

// sorting is a bucket sort whose buckets are new in each iteration, so that no registration serves twice, and the same sort
// with the same buckets, where all but the first do.
func sorting(ctx context.Context, o *figures.Options) (*figures.Result, error) {
	keys := sortKeys
	if o.Bytes > 0 {
		keys = o.Bytes / 4
	}
	rounds := sortRounds
	if o.Iterations > 0 {
		rounds = o.Iterations
	}
	res := &figures.Result{
		Kind: "measured on the " + o.Transport + " NIC of this machine, one rank that is all eight and sends to itself",
		Columns: append([]string{
			"buckets", "gb_per_s", "policy", "iteration_ms", "iteration_ms_min", "iteration_ms_max", "exchange_ms", "times_left_pinned", "hits_percent", "dropped_by_collections",
		}, pairedColumns("times_left_pinned")...),
		Notes: []string{
			fmt.Sprintf("%d keys of 4 bytes into %d buckets, each put to its place, a flush, and the sort of what came; %d iterations by turns, %d repeats; median [min, max]",
				keys, sortBuckets, rounds, o.Reps),
			"times_left_pinned: left pinned's median over this one's, of whole iterations; the paper: 1.09 with fewer than 5 % hits, a tie with 99 %",
			pairedNote + ", left pinned again",
			"garbage is collected as in any program; new buckets grow by append, as in examples/isx",
		},
	}
	chart := plot.Chart{Title: "a bucket sort against left pinned", Bars: true, Y: plot.Axis{Label: "times left pinned"}}
	for _, v := range exchangeVariants {
		chart.Series = append(chart.Series, plot.Series{Name: v.name})
	}
	for _, fresh := range []bool{true, false} {
		for _, bandwidth := range []int64{paperNIC, 0} {
			name := "the same"
			if fresh {
				name = "new"
			}
			say(o, "%s buckets, %.1f GB/s", name, float64(bandwidth)/1e9)
			runs, err := sortAll(ctx, o, keys, rounds, fresh, bandwidth)
			if err != nil {
				return nil, err
			}
			base := spreadOf(runs[0].whole)
			at := len(chart.X.Names)
			chart.X.Names = append(chart.X.Names, fmt.Sprintf("%s, %.1f GB/s", name, float64(bandwidth)/1e9))
			for i, r := range runs {
				s := spreadOf(r.whole).times(1e3)
				gain := base.median / spreadOf(r.whole).median
				res.Rows = append(res.Rows, append([]any{
					name, float64(bandwidth) / 1e9, exchangeVariants[i].name, s.median, s.least, s.most, spreadOf(r.sent).median * 1e3, gain,
					share(int(r.hits), int(r.hits+r.misses)), int(r.collections),
				}, three(paired.Quotient(r.whole, runs[0].whole))...))
				chart.Series[i].Points = append(chart.Series[i].Points, plot.Point{X: float64(at), Y: gain})
			}
		}
	}
	res.Notes = append(res.Notes, "0.0 GB/s: the NIC at its own speed")
	res.Charts = []figures.Chart{{Chart: chart}}
	return res, nil
}

// sortRun is what was seen of one policy.
type sortRun struct {
	whole, sent  []float64 // seconds
	hits, misses uint64
	collections  uint64
}

// sorter is a rank's program.
type sorter struct {
	win     *window.Window[uint32]
	buckets [][]uint32
	sorted  []uint32
	counts  []uint32
}

func sortAll(ctx context.Context, o *figures.Options, keys, rounds int, fresh bool, bandwidth int64) ([]sortRun, error) {
	runs := make([]sortRun, len(exchangeVariants))
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	input := make([]uint32, keys)
	for i := range input {
		input[i] = rng.Uint32N(sortMax)
	}
	for range o.Reps {
		if err := sortOnce(ctx, o, input, rounds, fresh, bandwidth, runs); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

func sortOnce(ctx context.Context, o *figures.Options, input []uint32, rounds int, fresh bool, bandwidth int64, runs []sortRun) (err error) {
	benches, err := openAll(ctx, o, exchangeVariants, warmBytes, int64(64*len(input)), pgas.Config{SoftBandwidth: bandwidth})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(ctx, benches)) }()
	sorters := make([]*sorter, len(benches))
	for i, b := range benches {
		sorters[i] = &sorter{sorted: make([]uint32, len(input)), counts: make([]uint32, sortMax)}
		if sorters[i].win, err = window.Allocate[uint32](ctx, b.w.Team(), len(input)); err != nil {
			return err
		}
	}
	for round := range rounds {
		for k := range sorters {
			i := paired.Turn(len(sorters), round, k)
			whole, sent, err := sorters[i].iterate(input, fresh)
			if err != nil {
				return fmt.Errorf("%s: %w", benches[i].name, err)
			}
			runs[i].whole, runs[i].sent = append(runs[i].whole, whole), append(runs[i].sent, sent)
		}
	}
	for i, b := range benches {
		s, _ := b.w.Registered()
		runs[i].hits += s.Hits
		runs[i].misses += s.MissCold + s.MissPartial + s.MissRights
		runs[i].collections += s.Collected
		err = errors.Join(err, sorters[i].win.Free(ctx))
	}
	return nil
}

// iterate sorts once and returns the seconds of all of it and of the exchange.
func (s *sorter) iterate(input []uint32, fresh bool) (whole, sent float64, err error) {
	began := time.Now()
	if fresh || s.buckets == nil {
		s.buckets = make([][]uint32, sortBuckets)
	}
	for i := range s.buckets {
		s.buckets[i] = s.buckets[i][:0]
	}
	const width = (sortMax + sortBuckets - 1) / sortBuckets
	for _, k := range input {
		b := int(k) / width
		s.buckets[b] = append(s.buckets[b], k)
	}
	start, at := time.Now(), 0
	for _, b := range s.buckets {
		if err := s.win.Put(0, at, b); err != nil {
			return 0, 0, err
		}
		at += len(b)
	}
	if err := s.win.Flush(0); err != nil {
		return 0, 0, err
	}
	sent = time.Since(start).Seconds()
	s.sort(s.win.Local())
	whole = time.Since(began).Seconds()
	return whole, sent, s.check(input)
}

// sort counts the keys and writes them in order.
func (s *sorter) sort(keys []uint32) {
	clear(s.counts)
	for _, k := range keys {
		s.counts[k]++
	}
	at := 0
	for k, n := range s.counts {
		for range n {
			s.sorted[at] = uint32(k)
			at++
		}
	}
}

// check is T1: as many keys as before, in order, and the same sum.
func (s *sorter) check(input []uint32) error {
	var before, after uint64
	for i, k := range input {
		before += uint64(k) * uint64(k)
		after += uint64(s.sorted[i]) * uint64(s.sorted[i])
		if i > 0 && s.sorted[i] < s.sorted[i-1] {
			return fmt.Errorf("wrong result at the target: key %d is out of order", i)
		}
	}
	if before != after {
		return errors.New("wrong result at the target: keys were lost")
	}
	return nil
}
