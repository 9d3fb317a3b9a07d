package transporttest

import (
	"runtime"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// Pace of an agent: how many operations of one endpoint before the next endpoint's, and how often it yields
// before it sleeps.
const (
	burst  = 16
	yields = 200
)

// runAgent performs this rank's operations until the domain is closed.
func (d *domain) runAgent() {
	idle := 0
	for !d.stop.Load() {
		if worked, _ := d.round(); worked {
			idle = 0
			continue
		}
		if idle++; idle < yields {
			runtime.Gosched()
			continue
		}
		seq := d.agent.Arm()
		// S2 of package sched: look once more after the announcement.
		if worked, limit := d.round(); !worked && !d.stop.Load() {
			d.agent.Wait(seq, limit)
		}
		d.agent.Disarm()
	}
	d.gone.Store(true)
	d.sched.Ring()
}

// round performs some operations of every endpoint. Where it could do nothing, it says when to look again.
func (d *domain) round() (worked bool, limit time.Duration) {
	limit = 10 * waitLimit
	var now int64
	if d.f.cfg.Jitter > 0 {
		now = int64(d.sched.Now())
	}
	for _, e := range *d.ends.Load() {
		w, l := d.serve(e, now)
		worked, limit = worked || w, min(limit, l)
		if e.detached.Load() && e.tail.Load() == e.head {
			d.forget(e)
		}
	}
	return worked, limit
}

// serve performs operations of one endpoint, in order.
func (d *domain) serve(e *end, now int64) (worked bool, limit time.Duration) {
	limit = 10 * waitLimit
	for range burst {
		if e.head == e.tail.Load() || d.stop.Load() {
			break
		}
		s := &e.ring[e.head%uint64(len(e.ring))]
		if s.ready > now && e.link.state.Load() == linkUp {
			limit = time.Duration(s.ready - now)
			break
		}
		status, bytes, wait := d.perform(e, &s.op)
		if wait {
			limit = waitLimit
			break
		}
		c := transport.Completion{Cookie: s.op.Cookie, EP: s.op.EP, Kind: s.op.Kind, Status: status, Bytes: uint32(bytes)}
		silent := status == transport.StatusOK && s.op.Flags&transport.FlagSignaled == 0
		// The slot is free before its place is given back: a poster may fill it at once.
		*s = slot{}
		e.head++
		e.quiet++
		if !silent {
			d.report(entry{c: c, e: e, places: e.quiet})
			e.quiet = 0
		}
		worked = true
	}
	d.giveBack(e)
	return worked, limit
}

// giveBack lets the next Poll free the places of what had nothing to report. They go through the queue and not
// straight to the poster, which would otherwise be ordered after the copy without having asked.
func (d *domain) giveBack(e *end) {
	if e.quiet > 0 {
		d.report(entry{e: e, places: e.quiet})
		e.quiet = 0
	}
}

// perform does one operation. wait says that it cannot be done yet: the target has no receive buffer.
func (d *domain) perform(e *end, op *transport.Op) (status transport.Status, bytes int, wait bool) {
	if state := e.link.state.Load(); state != linkUp {
		return e.flushed(op, state), 0, false
	}
	switch op.Kind {
	case transport.OpWrite:
		status, bytes = d.write(e, op)
	case transport.OpRead:
		status, bytes = d.read(e, op)
	case transport.OpFetchAdd, transport.OpCompareSwap:
		status, bytes = d.atomic(e, op)
	default:
		status, bytes, wait = d.message(e, op)
	}
	if status != transport.StatusOK {
		if state := e.link.state.Load(); state != linkUp {
			return e.flushed(op, state), 0, false // the peer's keys were void because it left
		}
		e.link.breakUp(linkBroken)
		e.peer.agent.Ring() // its agent flushes the other end
	}
	return status, bytes, wait
}

// flushed returns how an operation on a broken link ends. The first one after the peer's end says why; an
// atomic may have reached it.
func (e *end) flushed(op *transport.Op, state int32) transport.Status {
	if state != linkGone || e.sawGone {
		return transport.StatusFlushed
	}
	e.sawGone = true
	if op.Kind == transport.OpFetchAdd || op.Kind == transport.OpCompareSwap {
		return transport.StatusInDoubt
	}
	return transport.StatusPeerGone
}

// covered reports whether this rank's pieces are registered for the operation.
func (d *domain) covered(op *transport.Op, need transport.Access) bool {
	if op.Flags&transport.FlagInline != 0 {
		return true
	}
	for i := range op.SGE[:op.NSGE] {
		if s := &op.SGE[i]; !d.table.local(s.Mem, s.LKey, need) {
			return false
		}
	}
	return true
}

func (d *domain) write(e *end, op *transport.Op) (transport.Status, int) {
	src := op.SGE[:op.NSGE]
	if !d.covered(op, 0) {
		return transport.StatusLocalAccess, 0
	}
	n := softnic.Total(src)
	dst, reg := e.peer.table.remote(op.RAddr, op.RKey, n, transport.RemoteWrite)
	if reg == nil {
		return transport.StatusRemoteAccess, 0
	}
	d.land(dst, src)
	reg.mu.RUnlock()
	return transport.StatusOK, n
}

// land moves the bytes of a write.
func (d *domain) land(dst mem.Range, src []transport.SGE) {
	if d.caps.InOrderData {
		gatherInOrder(dst, src)
	} else {
		softnic.Gather(dst, src)
	}
}

func (d *domain) read(e *end, op *transport.Op) (transport.Status, int) {
	dst := op.SGE[:op.NSGE]
	if !d.covered(op, transport.LocalWrite) {
		return transport.StatusLocalAccess, 0
	}
	n := softnic.Total(dst)
	src, reg := e.peer.table.remote(op.RAddr, op.RKey, n, transport.RemoteRead)
	if reg == nil {
		return transport.StatusRemoteAccess, 0
	}
	softnic.Scatter(dst, src)
	reg.mu.RUnlock()
	return transport.StatusOK, n
}

func (d *domain) atomic(e *end, op *transport.Op) (transport.Status, int) {
	if !d.covered(op, transport.LocalWrite) {
		return transport.StatusLocalAccess, 0
	}
	dst, reg := e.peer.table.remote(op.RAddr, op.RKey, 8, transport.RemoteAtomic)
	if reg == nil {
		return transport.StatusRemoteAccess, 0
	}
	old := softnic.Apply(op.Kind, dst, op.Arg0, op.Arg1)
	reg.mu.RUnlock()
	softnic.ScatterWord(op.SGE[:1], old, 8)
	return transport.StatusOK, 8
}

// message performs what takes one of the target's receive buffers: a send, or a write with an immediate.
func (d *domain) message(e *end, op *transport.Op) (status transport.Status, bytes int, wait bool) {
	if !d.covered(op, 0) {
		return transport.StatusLocalAccess, 0, false
	}
	n := softnic.Total(op.SGE[:op.NSGE])
	var dst mem.Range
	if op.Kind == transport.OpWriteImm {
		var reg *region
		if dst, reg = e.peer.table.remote(op.RAddr, op.RKey, n, transport.RemoteWrite); reg == nil {
			return transport.StatusRemoteAccess, 0, false
		}
		defer reg.mu.RUnlock()
	}
	recv, ok := e.peer.recvs.take()
	if !ok {
		return transport.StatusOK, 0, true
	}
	arrived := transport.StatusOK
	switch {
	case op.Kind == transport.OpWriteImm:
	case n > recv.Buf.Mem.Bytes:
		status, arrived = transport.StatusTooLong, transport.StatusTooLong
	default:
		reg := e.peer.table.hold(recv.Buf.Mem, recv.Buf.LKey, transport.LocalWrite)
		if reg == nil {
			status, arrived = transport.StatusRemoteAccess, transport.StatusLocalAccess
			break
		}
		defer reg.mu.RUnlock()
		dst = recv.Buf.Mem.Slice(0, n)
	}
	if arrived == transport.StatusOK {
		d.land(dst, op.SGE[:op.NSGE])
		bytes = n
	}
	e.peer.report(entry{c: transport.Completion{
		Cookie: recv.Cookie, EP: transport.EP{Index: uint32(d.rank), Incarnation: e.ep.Incarnation},
		Kind: transport.OpRecv, Status: arrived, Bytes: uint32(bytes), Imm: op.Imm,
	}})
	return status, bytes, false
}
