package window_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

// each runs f in a world of n ranks on every path.
func each(t *testing.T, n int, f func(ctx context.Context, w *pgas.World, t *testing.T) error) {
	t.Helper()
	for _, p := range pgastest.Paths() {
		t.Run(fmt.Sprintf("%s-%d", p.Name, n), func(t *testing.T) {
			p.TimeLimit = 20 * time.Second
			pgastest.RunConfig(t, n, p.Config, func(ctx context.Context, w *pgas.World) error { return f(ctx, w, t) })
		})
	}
}

// sizes runs f in worlds of 1 to 4 ranks on every path.
func sizes(t *testing.T, f func(ctx context.Context, w *pgas.World, t *testing.T) error) {
	t.Helper()
	for n := 1; n <= 4; n++ {
		each(t, n, f)
	}
}
