// Package races_test runs small programs under the race check, each with a label: the lines that race, or none.
package races_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/touch"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

// marks finds the lines of the programs that end in a mark.
func marks(t *testing.T) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, name := range []string{"programs_test.go", "words_test.go", "flight_test.go", "memory_test.go", "local_test.go", "rooted_test.go", "packed_test.go"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			if _, mark, ok := strings.Cut(strings.TrimRight(line, "\n"), "// mark: "); ok {
				require.NotContains(t, out, mark)
				out[mark] = fmt.Sprintf("races/%s:%d", name, n)
			}
		}
	}
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

// programs are all of them, seen's last. Where page faults cannot be watched, what only they show is not looked for, and the check
// says so.
func programs() []program {
	return slices.Concat(conflicts, words, flights, orders, later, own, declared, attachments, packed, seen())
}

// seen are the programs of undeclared that can be judged here.
func seen() (all []program) {
	for _, p := range undeclared {
		// Beside the race detector it is C that makes atomic instructions, and nothing is known of its functions.
		if p.races == nil || unseen() == nil && !(detector && p.name == instruction) {
			all = append(all, p)
		}
	}
	return all
}

// unseen is why page faults cannot be watched here; nil: they can.
var unseen = sync.OnceValue(func() error {
	w, err := touch.Open()
	if err != nil {
		return err
	}
	return w.Free()
})

// heading is what the check says first, where it cannot see all that the programs do, or stands in their way.
const heading = "race check: uses of Local that are not declared go unseen: "

// headless takes the heading away, which must be there where it is due: heap is true of goroutine ranks beside Go's race detector.
func headless(t *testing.T, said []string, heap bool) []string {
	t.Helper()
	if unseen() == nil && !heap {
		return slices.DeleteFunc(slices.Clone(said), func(s string) bool {
			return os.Getuid() != 0 && strings.HasPrefix(s, "race check: system calls that are given memory of Local may fail")
		})
	}
	at := slices.IndexFunc(said, func(s string) bool { return strings.HasPrefix(s, heading) })
	require.GreaterOrEqual(t, at, 0, "%q", said)
	return slices.Delete(slices.Clone(said), at, at+1)
}

// judge compares reports with labels.
func judge(t *testing.T, races [][2]string, said []string) {
	t.Helper()
	lines := marks(t)
	var found []string
	for _, s := range said {
		if !strings.HasPrefix(s, "race: ") {
			continue
		}
		hit := slices.IndexFunc(races, func(r [2]string) bool {
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
	require.Len(t, found, len(races), "%s", strings.Join(said, "\n"))
	end := "race check: no races found"
	if n := len(found); n == 1 {
		end = "race check: 1 race found"
	} else if n > 1 {
		end = fmt.Sprintf("race check: %d races found", n)
	}
	require.Contains(t, said, end)
	require.Len(t, said, len(found)+1, "there is nothing that the check could not do")
}

// quiet are the programs that can run here: under Go's race detector those without races, since it sees real ones between
// goroutine ranks itself.
func quiet() []program {
	all := programs()
	if detector {
		all = slices.DeleteFunc(all, func(p program) bool { return p.races != nil })
	}
	return all
}

// underCheck runs f as goroutine ranks and returns what was reported.
func underCheck(t *testing.T, c pgastest.Config, f func(ctx context.Context, w *pgas.World) error) (said []string) {
	t.Helper()
	var mu sync.Mutex
	c.Check = "races"
	c.Say = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, text)
	}
	pgastest.RunConfig(t, ranks, c, f)
	return headless(t, said, detector)
}

// TestPrograms runs each in a world of its own.
func TestPrograms(t *testing.T) {
	for _, p := range quiet() {
		t.Run(p.name, func(t *testing.T) {
			judge(t, p.races, underCheck(t, pgastest.Config{}, func(ctx context.Context, w *pgas.World) error { return play(ctx, w, p) }))
		})
	}
}

// TestPaths runs them all one after the other, in a world of each path between goroutine ranks; with -short a third of them, by turns, where
// others are as different: but for mapped memory and the good NIC.
func TestPaths(t *testing.T) {
	for turn, path := range pgastest.Paths() {
		t.Run(path.Name, func(t *testing.T) {
			path.TimeLimit = 5 * time.Minute // of an emulated NIC's machine
			ps := quiet()
			if testing.Short() && path.Name != "mapped" && path.Name != "nic-good" {
				ps = third(ps, turn)
			}
			judge(t, labels(ps), underCheck(t, path.Config, func(ctx context.Context, w *pgas.World) error { return playAll(ctx, w, ps) }))
		})
	}
}

func third(ps []program, turn int) []program {
	return slices.DeleteFunc(ps, func(program) bool { turn++; return turn%3 != 0 })
}

// labels are those of several programs.
func labels(ps []program) (all [][2]string) {
	for _, p := range ps {
		all = append(all, p.races...)
	}
	return all
}

func playAll(ctx context.Context, w *pgas.World, ps []program) error {
	for _, p := range ps {
		if err := play(ctx, w, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// TestSimulated runs them all in virtual time, those that do not declare what they do in one world. With the same seed the reports are the same, word for word.
func TestSimulated(t *testing.T) {
	simulate := func(name string, ps []program) {
		t.Run(name, func(t *testing.T) {
			var said [2][]string
			for i := range said {
				c := pgastest.SimConfig{Ranks: ranks, Seed: 3, Check: "races", Say: func(text string) { said[i] = append(said[i], text) }}
				pgastest.RunSim(t, c, func(ctx context.Context, w *pgas.World) error { return playAll(ctx, w, ps) })
			}
			judge(t, labels(ps), headless(t, said[0], false))
			require.Equal(t, said[0], said[1])
		})
	}
	all, plain := programs(), seen()
	for _, p := range all[:len(all)-len(plain)] {
		simulate(p.name, []program{p})
	}
	simulate("undeclared", plain)
}

// TestProcesses runs them all one after the other, in one job of processes for each path; with -short a third over each NIC.
func TestProcesses(t *testing.T) {
	for turn, path := range pgastest.ProcPaths() {
		t.Run(path.Name, func(t *testing.T) {
			ps := programs()
			if testing.Short() && path.Name != "mapped" {
				ps = third(ps, turn)
			}
			path.Env = append(path.Env, "PGAS_CHECK=races")
			path.TimeLimit = 5 * time.Minute
			r, out := pgastest.StartProcs(t, ranks, path.Procs, 1, func(ctx context.Context, w *pgas.World) error {
				return playAll(ctx, w, ps)
			})
			require.Zero(t, r.Code, "%s\n%s", r.Cause, out)
			judge(t, labels(ps), headless(t, reports(t, out), false))
		})
	}
}

// reports are the lines of a job's output that the check has printed.
func reports(t *testing.T, out string) (said []string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if _, report, ok := strings.Cut(strings.TrimSpace(line), "pgas: race"); ok {
			said = append(said, "race"+report)
		}
	}
	return said
}

// TestFatal: a job with races fails if it is asked to, after it has ended in good order; one without does not.
func TestFatal(t *testing.T) {
	for name, want := range map[string]int{"put and put": 1, "get and get": 0} {
		t.Run(name, func(t *testing.T) {
			all := programs()
			p := all[slices.IndexFunc(all, func(p program) bool { return p.name == name })]
			c := pgastest.Procs{Env: []string{"PGAS_CHECK=races,fatal"}}
			r, out := pgastest.StartProcs(t, ranks, c, 1, func(ctx context.Context, w *pgas.World) error { return play(ctx, w, p) })
			require.Equal(t, want, r.Code, "%s\n%s", r.Cause, out)
			judge(t, p.races, headless(t, reports(t, out), false))
			require.Equal(t, want, strings.Count(out, "the program has races: 1, reported above"), out)
		})
	}
}

// TestRefused: what cannot be checked is an error at the start.
func TestRefused(t *testing.T) {
	for _, v := range []string{"race", "fatal", "races,fatal,more", "races fatal"} {
		_, err := pgas.FromEnvironment([]string{"PGAS_CHECK=" + v})
		require.ErrorIs(t, err, pgas.ErrConfig, v)
		require.ErrorContains(t, err, "want races, races,fatal or races,declared")
	}
	for _, err := range pgastest.Errors(t, 65, pgastest.Config{Check: "races"}, func(context.Context, *pgas.World) error { return nil }) {
		require.ErrorIs(t, err, pgas.ErrUnsupported)
		require.ErrorContains(t, err, "at most 64")
	}
}
