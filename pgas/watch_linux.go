package pgas

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gopgas/internal/peers"
)

// newsDelay is how long a death is kept back for the launcher's word on how it came about.
const newsDelay = 100 * time.Millisecond

// watchNeighbours watches the next rank of this node by a process descriptor, and the one after it when that ends. All
// ranks together watch each other in a ring with one descriptor each, and who finds a death tells all, those of other nodes too.
func (w *World) watchNeighbours(launcherTells bool) {
	stop, done := make(chan struct{}), make(chan struct{})
	w.stop = append(w.stop, func() {
		close(stop)
		<-done // it looks at shared memory, which goes next
	})
	go func() {
		defer close(done)
		for r := w.nextNeighbour(w.Rank()); r >= 0; r = w.nextNeighbour(r) {
			if !awaitEnd(w.cards[r].pid(), openProcess, stop) {
				return
			}
			if s, ok := w.engine.Peers.StateOf(r); ok && s == peers.Left {
				continue
			}
			if launcherTells {
				select {
				case <-time.After(newsDelay):
				case <-stop:
					return
				}
			}
			w.engine.Vanished(r)
		}
	}()
}

// openProcess returns a descriptor of a process that is readable when it has ended.
func openProcess(pid int) (int, error) { return unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK) }

// awaitEnd returns true when the process has ended, false when stop was closed. Where open gives no descriptor, since a
// filter of system calls forbids it or there are none left, it looks at the process now and then.
func awaitEnd(pid int, open func(pid int) (int, error), stop <-chan struct{}) bool {
	fd, err := open(pid)
	if err != nil {
		return err == unix.ESRCH || lookForEnd(pid, stop)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return lookForEnd(pid, stop)
	}
	ended := make(chan bool, 1)
	go func() {
		err := conn.Read(func(fd uintptr) bool { return hasEnded(int(fd)) })
		ended <- err == nil
	}()
	select {
	case ok := <-ended:
		return ok
	case <-stop:
		_ = f.SetReadDeadline(time.Now())
		<-ended
		return false
	}
}

// lookPause is how long lookForEnd sleeps between two looks.
const lookPause = 100 * time.Millisecond

// lookForEnd is awaitEnd without a descriptor.
func lookForEnd(pid int, stop <-chan struct{}) bool {
	t := time.NewTicker(lookPause)
	defer t.Stop()
	first := lifeOf(pid)
	for now := first; now != ""; now = lifeOf(pid) {
		if now != first {
			return true // another process has the number
		}
		select {
		case <-t.C:
		case <-stop:
			return false
		}
	}
	return true
}

// lifeOf tells a process from others that have its number earlier or later, by the time of its start where /proc shows it; "" for one
// that has ended, though its parent may not have asked yet how.
func lifeOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		if unix.Kill(pid, 0) == unix.ESRCH {
			return ""
		}
		return "not shown"
	}
	return statLife(string(text))
}

// processLives says whether a process has not ended, and whether this can be told.
func processLives(pid int) (lives, known bool) { return pid > 0 && lifeOf(pid) != "", pid > 0 }

// statLife is lifeOf of a line of proc(5)'s stat, in which the name in parentheses may have blanks and parentheses itself.
func statLife(line string) string {
	const state, start = 0, 19 // of the fields after the name
	f := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	switch {
	case len(f) <= start:
		return "not shown"
	case f[state] == "Z" || f[state] == "X":
		return ""
	}
	return f[start]
}

// hasEnded polls a process descriptor, which is readable when the process has ended.
func hasEnded(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1
}

// ownCores lists the processors that this process may run on.
func ownCores() []int { return coresOf(0) }

// jobCores lists those that the process which has started this one may run on: what the job was given, of which the launcher may
// have bound this rank to a part.
func jobCores() []int {
	parent := os.Getppid()
	if parent == 0 {
		return nil // it is outside of this container
	}
	// The thread that starts ranks may be bound as the last of them is; others are not.
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", parent))
	var all []int
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			all = append(all, coresOf(id)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func coresOf(pid int) []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return nil
	}
	var cores []int
	for c := 0; len(cores) < set.Count(); c++ {
		if set.IsSet(c) {
			cores = append(cores, c)
		}
	}
	return cores
}
