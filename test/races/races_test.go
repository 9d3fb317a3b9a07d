// Package races_test runs small programs under the race check, each with a label: the lines that race, or none.
package races_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

// marks finds the lines of programs_test.go that end in a mark.
func marks(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open("programs_test.go")
	require.NoError(t, err)
	defer f.Close()
	out := make(map[string]string)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if _, mark, ok := strings.Cut(lines.Text(), "// mark: "); ok {
			require.NotContains(t, out, mark)
			out[mark] = fmt.Sprintf("races/programs_test.go:%d", n)
		}
	}
	require.NoError(t, lines.Err())
	return out
}

// play runs a program as a rank does.
func play(ctx context.Context, w *pgas.World, p program) error {
	win, err := window.AllocateConfig[int64](ctx, w.Team(), 16, window.Config{Epochs: true})
	if err != nil {
		return err
	}
	sig, err := pgsync.NewSignals(ctx, w.Team(), 3)
	if err != nil {
		return err
	}
	lock, err := pgsync.NewLock(ctx, w.Team())
	if err != nil {
		return err
	}
	r := &rig{World: w, ctx: ctx, win: win, sig: sig, lock: lock, buf: make([]int64, 16)}
	return seq(func() error { return p.run(r) }, func() error { return win.Free(ctx) },
		func() error { return sig.Free(ctx) }, func() error { return lock.Free(ctx) })
}

// judge compares reports with a program's label.
func judge(t *testing.T, p program, said []string) {
	t.Helper()
	lines := marks(t)
	var found []string
	for _, s := range said {
		if !strings.HasPrefix(s, "race: ") {
			continue
		}
		hit := slices.IndexFunc(p.races, func(r [2]string) bool {
			a, b := lines[r[0]], lines[r[1]]
			require.NotEmpty(t, a, r[0])
			require.NotEmpty(t, b, r[1])
			at := strings.Index(s, a+" ")
			if at < 0 {
				at = strings.Index(s, a+":")
			}
			if at < 0 {
				return false
			}
			rest := s[:at] + s[at+len(a):]
			return slices.ContainsFunc([]string{" ", ":", ")"}, func(end string) bool { return strings.Contains(rest, b+end) })
		})
		require.GreaterOrEqual(t, hit, 0, "no such race: %s", s)
		found = append(found, s)
	}
	require.Len(t, found, len(p.races), "%s", strings.Join(said, "\n"))
	end := "race check: no races found"
	if n := len(found); n == 1 {
		end = "race check: 1 race found"
	} else if n > 1 {
		end = fmt.Sprintf("race check: %d races found", n)
	}
	require.Contains(t, said, end)
	require.Len(t, said, len(found)+1, "there is nothing that the check could not do")
}

// TestPrograms runs them all, on all paths between goroutine ranks.
func TestPrograms(t *testing.T) {
	all := slices.Concat(conflicts, orders, own)
	for _, path := range pgastest.Paths() {
		for _, p := range all {
			t.Run(path.Name+"/"+p.name, func(t *testing.T) {
				var mu sync.Mutex
				var said []string
				c := path.Config
				c.Check = "races"
				c.Say = func(text string) {
					mu.Lock()
					defer mu.Unlock()
					said = append(said, text)
				}
				pgastest.RunConfig(t, ranks, c, func(ctx context.Context, w *pgas.World) error { return play(ctx, w, p) })
				judge(t, p, said)
			})
		}
	}
}
