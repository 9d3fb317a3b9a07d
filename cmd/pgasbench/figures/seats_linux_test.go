package figures

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

// keepToTwo leaves all threads of this process, and the ranks that it starts, two of its cores until the test ends, or the one that there is.
func keepToTwo(t *testing.T) (cores int) {
	var may, some unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &may))
	for c := 0; cores < min(may.Count(), 2); c++ {
		if may.IsSet(c) {
			some.Set(c)
			cores++
		}
	}
	bind := func(set *unix.CPUSet) {
		for range 2 { // those too that have been started meanwhile
			tasks, err := os.ReadDir("/proc/self/task")
			require.NoError(t, err)
			for _, task := range tasks {
				tid, err := strconv.Atoi(task.Name())
				require.NoError(t, err)
				if err := unix.SchedSetaffinity(tid, set); err != unix.ESRCH { // ESRCH: it has ended
					require.NoError(t, err)
				}
			}
		}
	}
	bind(&some)
	t.Cleanup(func() { bind(&may) })
	return cores
}

// TestSeatsOfProcesses has busy ranks that are processes look at the seats that follow from what they post in memory which they share: on two cores
// one rank has a helper, under every policy but none, and four have none under any, whatever they have registered.
func TestSeatsOfProcesses(t *testing.T) {
	cores := keepToTwo(t)
	policies := seatPolicies()[:4]
	if testing.Short() {
		policies = policies[3:] // auto, the default
	}
	work := SeatWork{Bytes: 64 << 10, Iterations: learning + 1, Compute: 100 * time.Microsecond}
	for _, policy := range policies {
		for _, ranks := range seatJobs() {
			t.Run(fmt.Sprintf("%s-%d", policy, ranks), func(t *testing.T) {
				has := policy != "none" && ranks < cores
				env := []string{
					"PGAS_TRANSPORT=soft", "PGAS_LOCAL=" + seatsLocal(ranks), "PGAS_BULK=register", "PGAS_REG=predictive", "PGAS_REG_THRESHOLD=17K",
					"PGAS_IDLE_CORES=" + policy, "PGAS_MAX_PINNED=256M",
				}
				pgastest.RunProcsConfig(t, ranks, pgastest.Procs{Env: env}, func(ctx context.Context, w *pgas.World) error {
					r, err := work.Run(ctx, w)
					if err != nil {
						return err
					}
					if has {
						return eventually(func() string {
							if s, _ := w.Registered(); !s.Prediction.Helper {
								return "the rank has no helper"
							}
							return ""
						})
					}
					if r.Seated > 0 {
						return fmt.Errorf("rank %d had a helper after %d calls", r.Rank, r.Seated)
					}
					// Nobody gives back, so what is posted in the end is all buffers; who has seen that of a rank knows that its helper has looked for
					// a seat since.
					if err := eventually(func() string {
						posts := w.Team().Engine().Posts()
						for rank, p := range posts {
							if p.Bytes != buffers*uint64(work.Bytes) {
								return fmt.Sprintf("rank %d reads that rank %d has posted %d bytes", r.Rank, rank, p.Bytes)
							}
						}
						if len(posts) != ranks {
							return fmt.Sprintf("%d ranks have posted", len(posts))
						}
						return ""
					}); err != nil {
						return err
					}
					if s, _ := w.Registered(); s.Prediction.Helper {
						return fmt.Errorf("rank %d has a helper", r.Rank)
					}
					return w.Barrier(ctx) // others look still
				})
			})
		}
	}
}

// eventually waits until nothing is wrong any more.
func eventually(wrong func() string) error {
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		what := wrong()
		if what == "" {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("after 20 s %s", what)
		}
	}
}

// TestSeatRow works a line by hand: two rounds of two ranks, against none.
func TestSeatRow(t *testing.T) {
	report := func(us float64, seated int) *SeatReport {
		return &SeatReport{Calls: []float64{us, us}, Peak: 100, Average: 10, Hits: 3, Misses: 2, Predicted: 1, Seated: seated, Posted: []uint64{40, 2}}
	}
	none := seatRun{{report(10, 0), report(10, 0)}, {report(20, 0), report(20, 0)}}
	run := seatRun{{report(11, 1), report(11, 0)}, {report(24, 2), report(24, 2)}}
	row, average, longer := seatRow(2, "auto", run, none)
	require.Equal(t, []any{2, "auto", 1, 2, int64(200), 20.0, int64(42), 6.0, 4.0, 2.0, 17.5, 11.0, 24.0, longer.Median, longer.Low, longer.High}, row)
	require.InDelta(t, 20, average, 1e-9)
	require.InDelta(t, 15, longer.Median, 1e-9)
	require.InDelta(t, 10, longer.Low, 1e-9)
}

// TestSeatsWithoutRanks: nobody starts them here.
func TestSeatsWithoutRanks(t *testing.T) {
	f, err := Find("seats")
	require.NoError(t, err)
	_, err = f.Run(t.Context(), Options{})
	require.ErrorContains(t, err, "nobody to start them")
}
