package transfers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/eager"
	"gopgas/internal/plot"
)

const (
	searches    = 1 << 18 // of a round
	searchMost  = 1 << 20 // buffers
	searchSpace = 4096 + 64
)

// search is figure 3 of the paper: the time of a use by the number of buffers, in the hash table and in a balanced tree.
func search(_ context.Context, o *figures.Options) (*figures.Result, error) {
	sizes, err := o.Sweep(64, searchMost)
	if err != nil {
		return nil, err
	}
	rounds := 2 + o.Reps
	res := &figures.Result{
		Kind:    "measured on this machine, no NIC",
		Columns: []string{"buffers", "table_ns", "table_ns_min", "table_ns_max", "tree_ns", "tree_ns_min", "tree_ns_max", "again_ns"},
		Notes: []string{
			fmt.Sprintf("%d uses of known buffers by chance, %d rounds by turns, median [min, max]; buffers on pages of their own and a line apart; tree: AVL", searches, rounds),
			"both with the loop around them, which fetches the next address from a list; again_ns is the table once more, the control",
			"a use of the table that has all its buckets costs a miss of the cache, or two, from some thousand buffers on",
		},
	}
	hash, avl := plot.Series{Name: "hash table"}, plot.Series{Name: "balanced tree"}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, n := range sizes {
		say(o, "%d buffers", n)
		var t tree
		table := eager.NewTable()
		rng := rand.New(rand.NewPCG(o.Seed, uint64(n)))
		base := uint64(0x7f00_0000_0000)
		for i := range n {
			a := base + uint64(i)*searchSpace
			t.use(a)
			for !table.Use(a, 1) { // frequent at once, so that it goes on growing
				return nil, fmt.Errorf("the table refuses buffer %d", i)
			}
		}
		next := make([]uint64, searches)
		for i := range next {
			next[i] = base + uint64(rng.IntN(n))*searchSpace
		}
		runtime.GC()
		var values [3][]float64
		for range rounds {
			for k, use := range []func(uint64) bool{
				func(a uint64) bool { return table.Use(a, 1) },
				func(a uint64) bool { return t.use(a) > 0 },
				func(a uint64) bool { return table.Use(a, 1) },
			} {
				began := time.Now()
				good := 0
				for _, a := range next {
					if use(a) {
						good++
					}
				}
				values[k] = append(values[k], float64(time.Since(began).Nanoseconds())/searches)
				if good != searches {
					return nil, fmt.Errorf("%d of %d uses of %d buffers were found", good, searches, n)
				}
			}
		}
		h, a := spreadOf(values[0]), spreadOf(values[1])
		res.Rows = append(res.Rows, []any{n, h.median, h.least, h.most, a.median, a.least, a.most, spreadOf(values[2]).median})
		hash.Points, avl.Points = append(hash.Points, h.point(float64(n))), append(avl.Points, a.point(float64(n)))
	}
	res.Charts = []figures.Chart{{Chart: plot.Chart{
		Title: "a use of a known buffer", X: plot.Axis{Label: "buffers", Log: 2}, Y: plot.Axis{Label: "ns", Zero: true}, Series: []plot.Series{hash, avl},
	}}}
	return res, nil
}
