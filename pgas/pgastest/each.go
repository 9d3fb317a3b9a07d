package pgastest

import (
	"context"
	"fmt"
	"testing"

	"gopgas/pgas"
)

// Each runs f in a world of each number of ranks on every one of Paths, each in a subtest of its own.
func Each(t *testing.T, ranks []int, f func(ctx context.Context, w *pgas.World, t *testing.T) error) {
	t.Helper()
	for _, p := range Paths() {
		for _, n := range ranks {
			t.Run(fmt.Sprintf("%s-%d", p.Name, n), func(t *testing.T) {
				RunConfig(t, n, p.Config, func(ctx context.Context, w *pgas.World) error { return f(ctx, w, t) })
			})
		}
	}
}
