package window_test

import (
	"context"
	"os"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

// each runs f in a world of n ranks on every path.
func each(t *testing.T, n int, f func(ctx context.Context, w *pgas.World, t *testing.T) error) {
	t.Helper()
	pgastest.Each(t, []int{n}, f)
}

// sizes runs f in worlds of 1 to 4 ranks on every path.
func sizes(t *testing.T, f func(ctx context.Context, w *pgas.World, t *testing.T) error) {
	t.Helper()
	pgastest.Each(t, []int{1, 2, 3, 4}, f)
}
