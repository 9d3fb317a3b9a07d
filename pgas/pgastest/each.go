package pgastest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"gopgas/pgas"
)

// mostRanksVariable bounds the worlds of Each where a machine is too small for the larger ones.
const mostRanksVariable = "PGAS_TEST_RANKS"

// Each runs f in a world of each number of ranks on every one of Paths, each in a subtest of its own. PGAS_TEST_RANKS=4 leaves
// the worlds of more than 4 ranks out, but for the first number if all are larger.
func Each(t *testing.T, ranks []int, f func(ctx context.Context, w *pgas.World, t *testing.T) error) {
	t.Helper()
	most, err := strconv.Atoi(os.Getenv(mostRanksVariable))
	for _, p := range Paths() {
		for i, n := range ranks {
			if err == nil && n > most && i > 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s-%d", p.Name, n), func(t *testing.T) {
				RunConfig(t, n, p.Config, func(ctx context.Context, w *pgas.World) error { return f(ctx, w, t) })
			})
		}
	}
}
