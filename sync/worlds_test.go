package pgsync_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/bootstrap"
	"gopgas/internal/sched"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/shm"
)

// TestManyWorlds: a process that makes and closes many worlds whose teams took room for long collectives keeps nothing of them. Nobody frees the world's own
// team; what gives its room back is that World.Close closes the mapper.
func TestManyWorlds(t *testing.T) {
	worlds := 200
	if testing.Short() {
		worlds = 20
	}
	long := func(ctx context.Context, w *pgas.World) error {
		x := make([]int64, 1<<17)
		return pgsync.AllReduce(ctx, w.Team(), x, x, pgsync.Sum)
	}
	const mappings = "memory that is mapped"
	for name, run := range map[string]func(){
		"memory of the process": func() { pgastest.Run(t, 2, long) },
		mappings:                func() { mapped(t, 2, long) },
	} {
		t.Run(name, func(t *testing.T) {
			if raceEnabled && name == mappings {
				t.Skip("the detector does not see that memory")
			}
			for range worlds / 4 { // what is made once is there
				run()
			}
			for try := 1; ; try++ { // what the runtime takes by itself now and then it does not take each time
				before := resourcesNow(t)
				for range worlds {
					run()
				}
				after := resourcesNow(t)
				t.Logf("%d worlds: before %+v, after %+v", worlds, before, after)
				kept := after.descriptors > before.descriptors+4 ||
					after.mappings > before.mappings+16+worlds/8 || // a room is one on each of two ranks
					after.bytes > before.bytes+4<<20+worlds*pgsync.RoomBytes // and four times as many bytes
				if !kept {
					return
				}
				require.Less(t, try, 5, "%d worlds: before %+v, after %+v", worlds, before, after)
			}
		})
	}
}

// mapped runs f in a world of n ranks that map each other's memory as processes do.
func mapped(t *testing.T, n int, f func(context.Context, *pgas.World) error) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	jobs := bootstrap.InProcess(n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			m, err := shm.Open(shm.Config{What: "symmetric heap"})
			if err != nil {
				t.Error(err)
				return
			}
			w, err := pgas.Assemble(ctx, pgas.Config{}, pgas.Parts{Job: jobs[r], Mapper: m, Sched: sched.ProcessOn})
			if err == nil {
				err = errors.Join(f(ctx, w), w.Close(ctx))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// resources are what a process has of its machine.
type resources struct{ descriptors, mappings, bytes int }

func resourcesNow(t *testing.T) (r resources) {
	debug.FreeOSMemory() // and collects twice
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	rss := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, rss)
	kib, err := strconv.Atoi(string(rss[1]))
	require.NoError(t, err)
	for _, b := range maps {
		if b == '\n' {
			r.mappings++
		}
	}
	r.descriptors, r.bytes = len(fds), kib<<10
	return r
}
