package pgastest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
)

// Program is what a program does in a world: it is given its arguments, and where it prints.
type Program func(ctx context.Context, w *pgas.World, args []string, out io.Writer) error

// InWorlds runs the program in worlds of 1, 3, 4 and 8 ranks (with -short not of 4), over mapped memory and over a NIC, each in a subtest.
// args returns the arguments; check is given what each rank has printed.
func (p Program) InWorlds(t *testing.T, args func(nic bool) []string, check func(t *testing.T, nic bool, outs []string)) {
	t.Helper()
	worlds := []int{1, 3, 4, 8}
	if testing.Short() && !raceEnabled {
		worlds = []int{1, 3, 8}
	}
	for _, ranks := range worlds {
		for _, nic := range []bool{false, true} {
			t.Run(fmt.Sprintf("ranks=%d,nic=%v", ranks, nic), func(t *testing.T) {
				outs := make([]string, ranks)
				RunConfig(t, ranks, Config{NIC: nic}, func(ctx context.Context, w *pgas.World) error {
					var out bytes.Buffer
					err := p(ctx, w, args(nic), &out)
					outs[w.Rank()] = out.String()
					return err
				})
				check(t, nic, outs)
			})
		}
	}
}

// OnlyRank0 returns what rank 0 has printed; the other ranks have printed nothing, or t fails.
func OnlyRank0(t *testing.T, outs []string) string {
	t.Helper()
	for r := 1; r < len(outs); r++ {
		require.Empty(t, outs[r], "rank %d: only rank 0 reports", r)
	}
	return outs[0]
}

// Refuses runs the program with wrong arguments: the ranks must say what is wrong. A rank may hear that another one has
// ended for that reason before it has come so far itself.
func (p Program) Refuses(t *testing.T, ranks int, sentence string, args ...string) {
	t.Helper()
	said := 0
	for _, err := range Errors(t, ranks, Config{}, func(ctx context.Context, w *pgas.World) error {
		return p(ctx, w, args, io.Discard)
	}) {
		if !errors.Is(err, pgas.ErrPeerGone) {
			require.ErrorContains(t, err, sentence)
			said++
		}
	}
	require.Positive(t, said)
}
