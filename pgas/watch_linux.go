package pgas

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"gopgas/internal/peers"
)

// newsDelay is how long a death is kept back for the launcher's word on how it came about.
const newsDelay = 100 * time.Millisecond

// watchNeighbours watches the next rank of this node by a process descriptor, and the one after it when that ends. All
// ranks together watch each other in a ring with one descriptor each, and who finds a death tells all.
func (w *World) watchNeighbours(launcherTells bool) {
	stop, done := make(chan struct{}), make(chan struct{})
	w.stop = append(w.stop, func() {
		close(stop)
		<-done // it looks at shared memory, which goes next
	})
	go func() {
		defer close(done)
		for r := w.nextNeighbour(w.Rank()); r >= 0; r = w.nextNeighbour(r) {
			if !awaitEnd(w.cards[r].pid(), stop) {
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
			w.engine.Peers.MarkGone(r, peers.Vanished)
		}
	}()
}

// awaitEnd returns true when the process has ended, false when stop was closed or it cannot be watched.
func awaitEnd(pid int, stop <-chan struct{}) bool {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return err == unix.ESRCH
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return false
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

// hasEnded polls a process descriptor, which is readable when the process has ended.
func hasEnded(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1
}

// ownCores lists the processors that this process may run on.
func ownCores() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
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
