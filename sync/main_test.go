package pgsync_test

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

type body = func(ctx context.Context, w *pgas.World, t *testing.T) error

// each runs f in worlds of ns ranks on every path.
func each(t *testing.T, f body, ns ...int) {
	t.Helper()
	for _, p := range pgastest.Paths() {
		for _, n := range ns {
			if n > 9 && (p.Over != "" || p.Fabric.MaxPost+int(p.Fabric.Jitter) != 0) {
				continue // many ranks on a slow NIC take long and show nothing new
			}
			t.Run(fmt.Sprintf("%s-%d", p.Name, n), func(t *testing.T) {
				p.TimeLimit = 20 * time.Second
				pgastest.RunConfig(t, n, p.Config, func(ctx context.Context, w *pgas.World) error { return f(ctx, w, t) })
			})
		}
	}
}

// upTo17 are world sizes: all that differ in the shape of a barrier, and odd ones.
var upTo17 = []int{1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17}
