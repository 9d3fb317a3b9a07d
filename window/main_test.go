package window_test

import (
	"context"
	"os"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

// each runs f in a world of n ranks on every path, and in virtual time.
func each(t *testing.T, n int, f func(ctx context.Context, w *pgas.World, t *testing.T) error) {
	t.Helper()
	pgastest.Each(t, []int{n}, f)
}

// sizes runs f in worlds of 1 to 4 ranks on every path, and in virtual time.
func sizes(t *testing.T, f func(ctx context.Context, w *pgas.World, t *testing.T) error) {
	t.Helper()
	pgastest.Each(t, upTo4, f)
}

var upTo4 = []int{1, 2, 3, 4}
