package soft

import (
	"runtime"

	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// Of short operations of a kind on one region of a peer the kernel copies several in one call. A call between two processes takes 1.9 us, and of 16 pieces 0.6 for each
// (AMD EPYC, kernel -fc-v595, 2026-11-27, pieces of 8 and of 4096 bytes all over 8 MiB, by a program that was not kept).

const (
	bunchOps   = burst
	bunchBytes = 64 << 10 // together: as much as a poller moves at once
)

// ordered says that what the kernel writes in one call becomes visible in the order of its list, as operations must. On amd64 stores do, and string instructions are not
// reordered with others (Intel SDM 3A 9.2.4.2); elsewhere there would have to be a barrier between two pieces.
const ordered = runtime.GOARCH == "amd64"

// bunch performs those operations at the head of a seat's ring that can be copied in one call, and returns how many that were. What is more than the plain case it leaves to
// be performed one by one, also what could not be copied.
func (e *engine) bunch(s *seat, p *peer) (done int) {
	first := s.at(0)
	need, out := transport.RemoteRead, false
	if first.Kind == transport.OpWrite {
		need, out = transport.RemoteWrite, true
	}
	if p.local || out && !ordered || s.offset != 0 || s.moved || s.tail.Load()-s.head < 2 {
		return 0
	}
	n := e.list(s, first)
	if n < 2 || !p.begin(first.RAddr, first.RKey, first.first[0].Mem.Bytes, need) {
		return 0
	}
	key := &p.keys[softnic.Slot(first.RKey)&(p.board.regions-1)] // of all: the hazard is for each
	for i := 1; i < n; i++ {
		if sl := s.at(i); !key.allows(sl.RAddr, sl.RKey, sl.first[0].Mem.Bytes, uint64(need)) {
			n = i
		}
	}
	moved := e.mover.bunch(out, p.pid, n)
	mem.StoreFence()
	mem.Publish(p.hazard, 0)
	for ; done < n; done++ {
		bytes := s.at(0).first[0].Mem.Bytes
		if moved -= bytes; moved < 0 {
			break
		}
		e.finish(s, transport.StatusOK, bytes)
	}
	return done
}

// at is the i-th operation of a seat's that has not been finished.
func (s *seat) at(i int) *slot { return &s.ring[(s.head+uint64(i))&s.mask] }

// list has the mover list the operations from first on that go in one call.
func (e *engine) list(s *seat, first *slot) (n int) {
	room := bunchBytes
	for most := int(s.tail.Load() - s.head); n < min(most, bunchOps); n++ {
		sl := s.at(n)
		if sl.Kind != first.Kind || sl.RKey != first.RKey || sl.EP != first.EP || sl.NSGE != 1 || sl.due != 0 {
			break
		}
		here := sl.first[0].Mem
		if room -= here.Bytes; here.Bytes == 0 || room < 0 || !e.covered(sl) || skewed(sl.Kind == transport.OpWrite, here, sl.RAddr) {
			break
		}
		e.mover.pair(n, here, sl.RAddr)
	}
	return n
}
