package pgas_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport"
	"gopgas/window"
)

// lockAtMost lowers the limit of locked memory of this process if it is a rank.
func lockAtMost(t *testing.T, bytes uint64) {
	if os.Getenv("PMI_RANK") != "" {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: bytes, Max: bytes}))
	}
}

// nics are the paths between processes that go over a NIC.
func nics() []pgastest.NamedProcs {
	var out []pgastest.NamedProcs
	for _, p := range pgastest.ProcPaths() {
		if p.Name != "mapped" {
			out = append(out, p)
		}
	}
	return out
}

// TestLittleLockedMemory: with a limit of 64 KiB there is no NIC, and the error tells number and cure. Where memory is mapped
// the world goes on without one, and only what needs it fails, for all ranks alike.
func TestLittleLockedMemory(t *testing.T) {
	lockAtMost(t, 64<<10)
	for _, p := range nics() {
		t.Run(p.Name, func(t *testing.T) {
			r, out := pgastest.StartProcs(t, 2, p.Procs, 1, func(context.Context, *pgas.World) error {
				return errors.New("the world was made")
			})
			require.Equal(t, 1, r.Code, out)
			require.Contains(t, out, "64.0 KiB")
			require.Contains(t, out, "ulimit -l unlimited")
			require.NotContains(t, out, "the world was made")
		})
	}
	t.Run("mapped", func(t *testing.T) {
		pgastest.RunProcs(t, 2, func(ctx context.Context, w *pgas.World) error {
			_, err := window.Create(ctx, w.Team(), make([]int, 10))
			var limit *transport.LimitError
			if !errors.Is(err, pgas.ErrLimit) || !errors.As(err, &limit) {
				return fmt.Errorf("window over a slice: %w", err)
			}
			return tour(ctx, w)
		})
	})
}

// holdings are what a process has of the machine.
type holdings struct{ files, locked, heap, mappings, goroutines int }

func takeStock() (h holdings, err error) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, e1 := os.ReadDir("/proc/self/fd")
	status, e2 := os.ReadFile("/proc/self/status")
	maps, e3 := os.ReadFile("/proc/self/maps")
	field := func(name string) int {
		for line := range strings.Lines(string(status)) {
			if v, ok := strings.CutPrefix(line, name+":"); ok {
				n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(v), " kB"))
				return n
			}
		}
		return -1
	}
	return holdings{len(files), field("VmLck"), int(m.HeapAlloc), bytes.Count(maps, []byte("\n")), runtime.NumGoroutine()}, errors.Join(e1, e2, e3)
}

// TestTenThousandWindows makes and frees them, half over new slices, which a NIC registers, and half in the symmetric heap:
// registrations, files and memory are back where they were. On an emulated processor there are fewer.
func TestTenThousandWindows(t *testing.T) {
	for _, p := range pgastest.ProcPaths() {
		t.Run(p.Name, func(t *testing.T) {
			rounds := 5000
			if p.Name == "verbs" {
				rounds = 1000
			}
			if testing.Short() {
				rounds = 400
				if p.Name != "mapped" && p.Name != "soft" {
					rounds = 200 // each takes a dozen times over a network and back
				}
			}
			before := rounds / 2 // some things are made when many small transfers have been seen
			if raceEnabled {
				before, rounds = 20, 60
			}
			c := p.Procs
			c.TimeLimit = 3 * time.Minute // seconds where nothing else runs
			pgastest.RunProcsConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
				cycle := func(i int) error {
					heap, err := window.Allocate[uint64](ctx, w.Team(), 100+i%7)
					if err != nil {
						return err
					}
					mine := make([]uint64, 600+i%900)
					over, err := window.Create(ctx, w.Team(), mine)
					if err != nil {
						return err
					}
					err = errors.Join(over.Put(1-w.Rank(), i%600, []uint64{uint64(i)}), heap.Put(1-w.Rank(), 0, []uint64{uint64(i)}), over.Fence(ctx))
					if err == nil && (mine[i%600] != uint64(i) || heap.Local()[0] != uint64(i)) {
						err = fmt.Errorf("round %d brought %d and %d", i, mine[i%600], heap.Local()[0])
					}
					return errors.Join(err, over.Free(ctx), heap.Free(ctx))
				}
				var first holdings
				for i := range rounds {
					if i == before { // all that is made once is there
						var err error
						if first, err = takeStock(); err != nil {
							return err
						}
					}
					if err := cycle(i); err != nil {
						return fmt.Errorf("round %d: %w", i, err)
					}
				}
				last, err := takeStock()
				if err != nil {
					return err
				}
				if last.files != first.files || last.locked != first.locked || last.goroutines > first.goroutines+2 ||
					last.mappings > first.mappings+20 || last.heap > first.heap+1<<20 {
					return fmt.Errorf("first %+v, last %+v", first, last)
				}
				return nil
			})
		})
	}
}

// TestStoppedRankOnThisNode: a process that is stopped, as in a debugger, is not gone. On one node it is waited for; over a
// network a stopped process is like a dead machine, and gone after the failure timeout.
func TestStoppedRankOnThisNode(t *testing.T) {
	const long = 2 * time.Second // twice the failure timeout
	for _, p := range pgastest.ProcPaths() {
		t.Run(p.Name, func(t *testing.T) {
			c := p.Procs
			c.Env = append(c.Env, "PGAS_FAILURE_TIMEOUT=1s")
			c.NoKill = true
			r, out := pgastest.StartProcs(t, 2, c, 1, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[int64](ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				if w.Rank() == 1 {
					pid := fmt.Sprint(os.Getpid())
					if err := exec.Command("sh", "-c", "kill -STOP "+pid+"; sleep 2; kill -CONT "+pid).Run(); err != nil {
						return err
					}
					return w.Barrier(ctx)
				}
				began := time.Now()
				_, e1 := window.FetchAdd(win, 1, 0, 1)
				e2 := w.Barrier(ctx)
				fmt.Printf("waited long: %v; gone: %v\n", time.Since(began) > long*3/4, errors.Is(errors.Join(e1, e2), pgas.ErrPeerGone))
				return errors.Join(e1, e2)
			})
			if p.Name == "tcp" {
				require.NotZero(t, r.Code)
				require.Contains(t, out, "gone: true", out)
				return
			}
			require.Zero(t, r.Code, out)
			require.Contains(t, out, "waited long: true; gone: false")
		})
	}
}
