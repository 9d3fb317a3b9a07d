package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// together is how many windows there are to each that all ranks make. The others a rank makes by itself, over its NIC all the same: what the
// ranks tell each other about a window is most of what one takes where processors are emulated, and is the same for each.
const together = 20

// churn makes and frees n windows in each rank, and looks whether the process holds afterwards what it held before.
func churn(ctx context.Context, w *pgas.World, n int) error {
	alone, err := w.Team().Split(ctx, w.Rank(), 0)
	if err != nil {
		return err
	}
	cycles := func(n int) error {
		for i := range n {
			team := alone
			if i%together == 0 {
				team = w.Team()
			}
			if err := cycle(ctx, team, i); err != nil {
				return fmt.Errorf("window %d: %w", i, err)
			}
		}
		return w.Barrier(ctx)
	}
	if err := cycles(min(10*together, n)); err != nil { // chunks of the heap, buffers and maps have grown by then
		return err
	}
	before, err := steady(func(now, last holding) bool { return now.same(last) })
	if err != nil {
		return err
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	if err := cycles(n); err != nil {
		return err
	}
	after, err := steady(func(now, _ holding) bool { return now.same(before) })
	if err != nil {
		return err
	}
	if err := w.Barrier(ctx); err != nil { // those of a rank that is at its end are gone
		return err
	}
	if !after.same(before) || before.regions == 0 || after.resident > before.resident+32<<10 {
		return fmt.Errorf("after %d windows this process holds %+v, before %+v", n, after, before)
	}
	fmt.Printf("rank %d made %d windows and holds %+v, before %+v\n", w.Rank(), n, after, before)
	return alone.Free(ctx)
}

// cycle makes a window over new memory, which the NIC registers, puts to the next member, and frees the window.
func cycle(ctx context.Context, team *pgsync.Team, i int) error {
	local := make([]uint64, 512+i%512)
	win, err := window.Create(ctx, team, local)
	if err != nil {
		return err
	}
	if _, mapped := win.View(team.Rank()); mapped {
		return fmt.Errorf("it is reached by loads and stores")
	}
	if err := win.Put((team.Rank()+1)%team.Size(), 0, []uint64{uint64(i + 1)}); err != nil {
		return err
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	if local[0] != uint64(i+1) {
		return fmt.Errorf("it holds %d", local[0])
	}
	return win.Free(ctx)
}

// holding is what a process holds: files, and memory in KiB; and all registrations that the kernel knows of, those of all ranks.
type holding struct{ fds, regions, pinned, resident int }

// same compares what must be exactly as it was.
func (h holding) same(o holding) bool {
	return h.fds == o.fds && h.regions == o.regions && h.pinned == o.pinned
}

// steady returns what the process holds once that is as wanted, or what it holds after some seconds: what transfers cost is measured beside the
// program, with registrations of its own that come and go.
func steady(wanted func(now, last holding) bool) (holding, error) {
	last, err := held()
	for range 50 {
		if err != nil {
			break
		}
		time.Sleep(200 * time.Millisecond)
		var now holding
		if now, err = held(); wanted(now, last) {
			return now, err
		}
		last = now
	}
	return last, err
}

func held() (h holding, err error) {
	h.pinned, h.resident = memory()
	list, err := exec.Command("rdma", "resource", "show", "mr").Output()
	if err != nil {
		return h, fmt.Errorf("rdma resource show mr: %w", err)
	}
	h.regions = strings.Count(string(list), " mrlen ")
	fds, err := os.ReadDir("/proc/self/fd")
	h.fds = len(fds)
	return h, err
}

// memory is what this process has pinned and what is resident, in KiB.
func memory() (pinned, resident int) {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "VmPin: %d kB", &pinned)
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &resident)
	}
	return pinned, resident
}
