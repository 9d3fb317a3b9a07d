package pgas_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/auto"
	"gopgas/window"
)

// tour uses everything once and checks what comes of it.
func tour(ctx context.Context, w *pgas.World) error {
	n := w.Size()
	a, err := pgas.NewArray[float64](ctx, w.Team(), 1000*n, pgas.Cyclic())
	if err != nil {
		return err
	}
	mine := make([]float64, 1000)
	for i := range mine {
		mine[i] = float64(w.Rank()*1000 + i)
	}
	if err := errors.Join(a.Put(w.Rank()*1000, mine), a.Fence(ctx)); err != nil {
		return err
	}
	all := make([]float64, 1000*n)
	if err := a.Get(0, all); err != nil {
		return err
	}
	for i, v := range all {
		if v != float64(i) {
			return fmt.Errorf("element %d is %v", i, v)
		}
	}
	win, err := window.Allocate[int64](ctx, w.Team(), 4)
	if err != nil {
		return err
	}
	lock, err := pgsync.NewLock(ctx, w.Team())
	if err != nil {
		return err
	}
	word := make([]int64, 1)
	for range 20 {
		_, e1 := window.FetchAdd(win, 0, 0, 1)
		e2 := window.Accumulate(win, 0, 1, []int64{2, 3}, pgsync.Sum)
		e3 := lock.Lock(ctx)
		e4 := win.Get(0, 3, word)
		word[0]++
		if err := errors.Join(e1, e2, e3, e4, win.Put(0, 3, word), win.Flush(0), lock.Unlock()); err != nil {
			return err
		}
	}
	sum := []int64{int64(w.Rank())}
	if err := errors.Join(win.Fence(ctx), pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum)); err != nil {
		return err
	}
	if want := int64(20 * n); w.Rank() == 0 && fmt.Sprint(win.Local()) != fmt.Sprint([]int64{want, 2 * want, 3 * want, want}) {
		return fmt.Errorf("counted %v, wanted %d", win.Local(), want)
	}
	if sum[0] != int64(n*(n-1)/2) {
		return fmt.Errorf("sum of ranks %d", sum[0])
	}
	return errors.Join(win.Fence(ctx), lock.Free(ctx), win.Free(ctx), a.Free(ctx))
}

// TestNamedTransport: what the user names carries every operation between processes, and is counted under its name.
func TestNamedTransport(t *testing.T) {
	for _, p := range pgastest.ProcPaths() {
		t.Run(p.Name, func(t *testing.T) {
			pgastest.RunProcsConfig(t, 3, p.Procs, func(ctx context.Context, w *pgas.World) error {
				if err := tour(ctx, w); err != nil || p.Name == "mapped" {
					return err
				}
				for r := range w.Size() {
					if w.Transport(r) != p.Name {
						return fmt.Errorf("the transport to rank %d is %q", r, w.Transport(r))
					}
				}
				stats := w.Stats()
				if s := stats[p.Name]; len(stats) != 1 || s["inline"].Ops == 0 || s["bounce"].Bytes < 8000 || s["message"].Ops < 20 {
					return fmt.Errorf("statistics: %v", stats)
				}
				return nil
			})
		})
	}
}

// TestUnusableTransport: a transport that is named and cannot be used ends the job with the reason, also where memory is
// mapped and nothing would have needed it.
func TestUnusableTransport(t *testing.T) {
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"unknown":   {[]string{"PGAS_TRANSPORT=pigeon"}, `PGAS_TRANSPORT: not supported here: no transport of this build is called "pigeon"; there are: shm, soft, verbs, tcp`},
		"no device": {[]string{"PGAS_TRANSPORT=tcp", "PGAS_DEVICE=nosuch0"}, `PGAS_TRANSPORT=tcp cannot be used here: open tcp: device "nosuch0" is neither an address nor an interface`},
		"foreign":   {[]string{"PGAS_TRANSPORT=tcp", "PGAS_DEVICE=203.0.113.77", "PGAS_LOCAL=off"}, "listen on 203.0.113.77"},
		"unequal":   {[]string{"PGAS_TRANSPORT=shm", "PGAS_LOCAL=off"}, "PGAS_LOCAL=off leaves no way between the ranks of one node; set PGAS_TRANSPORT to one of: soft, verbs, tcp"},
	} {
		t.Run(name, func(t *testing.T) {
			r, out := pgastest.StartProcs(t, 2, pgastest.Procs{Env: c.env}, 1, func(context.Context, *pgas.World) error {
				return errors.New("the world was made")
			})
			require.Equal(t, 1, r.Code, out)
			require.Contains(t, out, c.want)
			require.NotContains(t, out, "the world was made")
		})
	}
}

// envNode tells a rank that it is on a node of its own already.
const envNode = "PGAS_TEST_NODE"

// moveAway starts this process anew, in a name space that it shares with no other rank, if it is one of those ranks: to the
// library it is on another node then.
func moveAway(t *testing.T, ranks string) {
	if r := os.Getenv("PMI_RANK"); r == "" || !strings.Contains(ranks, r) || os.Getenv(envNode) != "" {
		return
	}
	tool, err := exec.LookPath("unshare")
	require.NoError(t, err)
	args := []string{"unshare", "--ipc"}
	if os.Geteuid() != 0 {
		args = append(args, "--map-root-user")
	}
	require.NoError(t, os.Setenv(envNode, "own"))
	require.NoError(t, syscall.Exec(tool, append(args, os.Args...), os.Environ()))
}

// TestNodes has ranks 0 and 1 on one node, which map each other's memory, and ranks 2 and 3 on nodes of their own.
func TestNodes(t *testing.T) {
	moveAway(t, "23")
	fabric, _ := auto.Fabric("")
	far := auto.Choose(2, []string{fabric}) // tcp, but on a machine with RDMA
	pgastest.RunProcs(t, 4, func(ctx context.Context, w *pgas.World) error {
		for r, want := range []int{0, 0, 1, 2} {
			if n, _ := w.Node(r); n != want {
				return fmt.Errorf("rank %d is on node %d", r, n)
			}
			way := far
			if n, _ := w.Node(w.Rank()); n == want {
				way = "shm"
			}
			if w.Transport(r) != way {
				return fmt.Errorf("from rank %d to %d by %s", w.Rank(), r, w.Transport(r))
			}
		}
		if err := tour(ctx, w); err != nil {
			return err
		}
		words, err := pgas.NewArray[uint64](ctx, w.Team(), 4, pgas.Block())
		if err != nil {
			return err
		}
		if err := errors.Join(words.Set((w.Rank()+2)%4, 1), words.Free(ctx)); err != nil {
			return err
		}
		if s := w.Stats(); s[far]["inline"].Ops == 0 || s[far]["bounce"].Bytes == 0 {
			return fmt.Errorf("statistics: %v", s)
		}
		return nil
	})
}

// TestNearTransportBetweenNodes names one that does not reach the other nodes.
func TestNearTransportBetweenNodes(t *testing.T) {
	moveAway(t, "1")
	for _, name := range []string{"soft", "shm"} {
		t.Run(name, func(t *testing.T) {
			r, out := pgastest.StartProcs(t, 2, pgastest.Procs{Env: []string{"PGAS_TRANSPORT=" + name}}, 1, func(context.Context, *pgas.World) error {
				return errors.New("the world was made")
			})
			require.Equal(t, 1, r.Code, out)
			require.Contains(t, out, "PGAS_TRANSPORT="+name+" cannot be used here: not supported here: "+name+
				" connects the ranks of one node only, and these are on 2; what connects them: verbs, tcp")
		})
	}
}

// TestDeathOnAnotherNode: nobody watches the process of a rank on another node; the network tells.
func TestDeathOnAnotherNode(t *testing.T) {
	moveAway(t, "12")
	for _, how := range []string{"killed", "stopped"} {
		t.Run(how, func(t *testing.T) {
			c := pgastest.Procs{NoKill: true, Env: []string{"PGAS_FAILURE_TIMEOUT=1s"}, TimeLimit: time.Minute}
			r, out := pgastest.StartProcs(t, 3, c, 1, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[byte](ctx, w.Team(), 1<<20)
				if err != nil {
					return err
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				if w.Rank() == 2 {
					if how == "killed" {
						return errors.Join(syscall.Kill(os.Getpid(), syscall.SIGKILL), errors.New("alive"))
					}
					pid := fmt.Sprint(os.Getpid())
					// It comes back when all is over: a stopped process does not end.
					if err := exec.Command("sh", "-c", "kill -STOP "+pid+"; sleep 4; kill -KILL "+pid).Start(); err != nil {
						return err
					}
					select {}
				}
				src := make([]byte, 1<<20)
				for err == nil {
					err = errors.Join(win.Put(2, 0, src), win.Flush(2))
				}
				var oe *pgas.OpError
				if !errors.Is(err, pgas.ErrPeerGone) || !errors.As(err, &oe) || oe.Rank != 2 {
					return err
				}
				// Those that are left still reach each other.
				if err := errors.Join(win.Put(1-w.Rank(), 0, src), win.Flush(1-w.Rank())); err != nil {
					return err
				}
				fmt.Println("was told")
				return goOn(ctx, w)
			})
			require.Equal(t, 137, r.Code, out)
			require.Equal(t, 2, strings.Count(out, "was told"), out)
			require.Equal(t, 2, strings.Count(out, "went on"), out)
			require.NotContains(t, out, "pgas: rank", "they end well")
		})
	}
}
