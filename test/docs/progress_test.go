package docs_test

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

// TestProgressWithoutTheTarget: rank 1 computes and calls nothing of the library, until a word of its memory has changed;
// rank 0 does everything that there is to it meanwhile, also what no hardware can do.
func TestProgressWithoutTheTarget(t *testing.T) {
	for _, path := range pgastest.ProcPaths() {
		t.Run(strings.ReplaceAll(path.Name, " ", "-"), func(t *testing.T) {
			pgastest.RunProcsConfig(t, 2, path.Procs, func(ctx context.Context, w *pgas.World) error {
				words, err := window.Allocate[uint64](ctx, w.Team(), 4)
				if err != nil {
					return err
				}
				small, err := window.Allocate[int16](ctx, w.Team(), 4)
				if err != nil {
					return err
				}
				stop := &words.Local()[0]
				if w.Rank() == 1 {
					for atomic.LoadUint64(stop) == 0 { // the computation
					}
				} else {
					got := make([]uint64, 4)
					if err := words.Put(1, 1, []uint64{5, 6}); err != nil {
						return err
					}
					if err := words.Flush(1); err != nil {
						return err
					}
					if _, err := window.FetchAdd(words, 1, 2, 10); err != nil {
						return err
					}
					if err := words.Get(1, 0, got); err != nil {
						return err
					}
					require.Equal(t, []uint64{0, 5, 16, 0}, got)
					old := make([]int16, 4)
					for range 2 {
						if err := window.GetAccumulate(small, 1, 0, []int16{1, 2, 3, 4}, old, pgsync.Sum); err != nil {
							return err
						}
					}
					require.Equal(t, []int16{1, 2, 3, 4}, old)
					if err := words.Put(1, 0, []uint64{1}); err != nil {
						return err
					}
					if err := words.Flush(1); err != nil {
						return err
					}
				}
				if err := small.Free(ctx); err != nil {
					return err
				}
				return words.Free(ctx)
			})
		})
	}
}
