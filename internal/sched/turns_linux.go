package sched

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func (s *Sched) turns(limit time.Duration) (t Turns) {
	// Since Linux 6.12 that is the slice of a thread without deadlines or real-time priority (sched_setattr(2)); before, it is 0.
	if a, err := unix.SchedGetAttr(0, 0); err == nil && (a.Policy == unix.SCHED_NORMAL || a.Policy == unix.SCHED_BATCH || a.Policy == unix.SCHED_IDLE) {
		t.Slice = time.Duration(a.Runtime)
	}
	var there, back tube
	if unix.Pipe2(there[:], unix.O_CLOEXEC) != nil {
		return t
	}
	defer there.close()
	if unix.Pipe2(back[:], unix.O_CLOEXEC) != nil {
		return t
	}
	defer back.close()
	core := ownCore()
	ended := make(chan bool)
	s.Thread(func(th *Thread) {
		defer func() { ended <- true }()
		if th.Bind(core) != nil {
			_ = back.put(stop)
			return
		}
		for {
			b, err := there.get()
			if err != nil || b == stop || back.put(b) != nil {
				return
			}
		}
	})
	s.Thread(func(th *Thread) {
		defer func() { ended <- true }()
		defer func() { _ = there.put(stop) }()
		if th.Bind(core) != nil {
			return
		}
		ping := func(to, from *tube) func() error {
			return func() error {
				if err := to.put(on); err != nil {
					return err
				}
				b, err := from.get()
				if b == stop {
					err = errors.New("the other thread cannot be bound")
				}
				return err
			}
		}
		both := s.bestOf(limit/2, ping(&there, &back))
		t.Swap = swapOf(both, s.bestOf(limit/2, ping(&back, &back)))
	})
	<-ended
	<-ended
	return t
}

// ownCore is a core that the process may run on: not the same for all processes.
func ownCore() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil || set.Count() == 0 {
		return 0
	}
	core := -1
	for k := os.Getpid() % set.Count(); k >= 0; k-- {
		for core++; !set.IsSet(core); core++ {
		}
	}
	return core
}

// tube is a pipe of single bytes: on, or stop.
type tube [2]int

const on, stop = 1, 2

func (p *tube) put(b byte) error {
	_, err := unix.Write(p[1], []byte{b})
	return err
}

func (p *tube) get() (byte, error) {
	var b [1]byte
	for {
		if _, err := unix.Read(p[0], b[:]); !errors.Is(err, unix.EINTR) {
			return b[0], err
		}
	}
}

func (p *tube) close() {
	_ = unix.Close(p[0])
	_ = unix.Close(p[1])
}
