package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"gopgas/pgas"
)

// pin binds this process, or the calling thread, to core rank%cores of those it may use.
func pin(how string, w *pgas.World) (pinning, error) {
	none := pinning{"not pinned", func() {}}
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &may); err != nil {
		return none, fmt.Errorf("read the cores of this process: %w", err)
	}
	here, mine := 0, 0
	node, _ := w.Node(w.Rank())
	for r := range w.Size() {
		if n, _ := w.Node(r); n == node {
			if r < w.Rank() {
				mine++
			}
			here++
		}
	}
	if may.Count() == 1 {
		return pinning{"bound by the launcher, a core for each process", func() {}}, nil
	}
	how = choosePin(how, here)
	if how == pinOff {
		return none, nil
	}
	core := coreOf(mine, &may)
	var one unix.CPUSet
	one.Set(core)
	if how == pinThread {
		runtime.LockOSThread()
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return none, fmt.Errorf("bind a thread to core %d: %w", core, err)
		}
		return pinning{fmt.Sprintf("the measuring thread of rank r on core r mod %d", may.Count()), func() {
			_ = unix.SchedSetaffinity(0, &may)
			runtime.UnlockOSThread()
		}}, nil
	}
	if err := bindThreads(&one); err != nil {
		return none, fmt.Errorf("bind the process to core %d: %w", core, err)
	}
	return pinning{fmt.Sprintf("rank r's process on core r mod %d", may.Count()), func() { _ = bindThreads(&may) }}, nil
}

// coreOf is the n-th core of may, counted round.
func coreOf(n int, may *unix.CPUSet) int {
	n %= max(may.Count(), 1)
	for c := range 64 * len(may) {
		if may.IsSet(c) {
			if n == 0 {
				return c
			}
			n--
		}
	}
	return 0
}

// bindThreads binds every thread that the process has; those to come inherit it. It goes on until a pass has found
// no new one.
func bindThreads(set *unix.CPUSet) error {
	bound := map[int]bool{}
	for {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		news := false
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || bound[tid] {
				continue
			}
			if err := unix.SchedSetaffinity(tid, set); err != nil && err != unix.ESRCH {
				return err
			}
			bound[tid], news = true, true
		}
		if !news {
			return nil
		}
	}
}

// onCores calls start, which starts a process, so that it may use only so many of the cores that this one may.
func onCores(n int, start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var may, some unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return fmt.Errorf("read the cores of this process: %w", err)
	}
	if may.Count() < n {
		return fmt.Errorf("%d cores are wanted, and this process may use %d", n, may.Count())
	}
	for i := range n {
		some.Set(coreOf(i, &may))
	}
	if err := unix.SchedSetaffinity(0, &some); err != nil {
		return fmt.Errorf("bind to %d cores: %w", n, err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &may) }() // it was so before
	return start()
}
