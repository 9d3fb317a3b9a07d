package sim

import (
	"time"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// flight is one operation from Post to its report. See "Life of an operation" in the package comment.
type flight struct {
	op     transport.Op
	e      *end
	inline []uint64
	bytes  int // payload
	landed int // of it, so far
	dst    mem.Range
	recv   transport.Recv
	old    uint64 // an atomic's result
	begin  time.Duration
	status transport.Status
	gone   bool // flushed because the peer is gone
	done   bool

	next, nextPosted *flight
}

// Stages: what a flight's next action is.
const (
	stageSend   = iota // the operation reaches the node's NIC
	stageThere         // it reaches the target's NIC
	stageLand          // a piece of its payload has reached the target's memory
	stageReturn        // its answer begins to reach the poster's NIC
	stageDone          // the poster's NIC knows its end
)

// What the trace tells apart.
const (
	noteDone = iota + 1
	noteRead
	noteLand
	noteAtomic
	noteGone
)

func (f *Fabric) flight() *flight {
	fl := f.free
	if fl == nil {
		return &flight{}
	}
	f.free = fl.next
	*fl = flight{inline: fl.inline}
	return fl
}

// Fire implements sched.Action.
func (fl *flight) Fire(stage uint64) {
	e := fl.e
	switch stage {
	case stageSend:
		e.underway--
		e.transmit(fl)
	case stageThere:
		e.arrived.push(fl)
		e.serve()
	case stageLand:
		fl.land()
	case stageReturn:
		in := &e.d.port().in
		*in = max(e.now(), *in) + e.d.f.model.PerByte.of(fl.bytes)
		e.at(*in, fl, stageDone)
	case stageDone:
		fl.finish()
	}
}

// port is the NIC of the rank's node.
func (d *domain) port() *port { return &d.f.ports[d.f.Node(d.rank)] }

func (e *end) now() time.Duration { return e.d.f.sim.Time() }

func (e *end) at(t time.Duration, fl *flight, stage uint64) { e.d.f.sim.At(t, fl, stage) }

func (fl *flight) fetches() bool {
	return fl.op.Kind == transport.OpRead || fl.op.Kind == transport.OpFetchAdd || fl.op.Kind == transport.OpCompareSwap
}

// transmit sends an operation, unless it waits behind a fence.
func (e *end) transmit(fl *flight) {
	if e.held.first != nil || fl.op.Flags&transport.FlagFence != 0 && e.fetching > 0 {
		e.held.push(fl)
		if e.link.state != linkUp {
			e.release()
		}
		return
	}
	e.launch(fl)
}

// delay is how much longer something takes by chance.
func (f *Fabric) delay() time.Duration {
	if f.cfg.Faults.Delay <= 0 {
		return 0
	}
	return time.Duration(f.sim.Rand().Int64N(int64(f.cfg.Faults.Delay) + 1))
}

// release sends what waits behind fences and need not any more.
func (e *end) release() {
	for e.held.first != nil {
		down := e.link.state != linkUp
		if !down && e.held.first.op.Flags&transport.FlagFence != 0 && e.fetching > 0 {
			return
		}
		e.launch(e.held.pop())
	}
}

// launch has the NIC send an operation: after all that it sends already, and its gap before whatever comes next.
func (e *end) launch(fl *flight) {
	if fl.fetches() {
		e.fetching++
	}
	if e.link.state != linkUp {
		fl.flush()
		return
	}
	f := e.d.f
	m := &f.model
	port := e.d.port()
	start := max(e.now(), port.out)
	port.out = start + m.cost(fl.op.Kind).Gap
	if !fl.fetches() {
		port.out += m.PerByte.of(fl.bytes)
	}
	e.lastThere = max(start+e.latency+f.delay(), e.lastThere)
	e.at(e.lastThere, fl, stageThere)
}

// serve performs what has arrived at the target, in order.
func (e *end) serve() {
	for e.arrived.first != nil && !e.dry && (!e.landing || e.link.state != linkUp) {
		fl := e.arrived.first
		if e.link.state == linkUp && (fl.op.Kind == transport.OpSend || fl.op.Kind == transport.OpWriteImm) {
			var ok bool
			if fl.recv, ok = e.peer.recvs.take(); !ok {
				e.thirsty()
				return
			}
		}
		e.arrived.pop()
		fl.perform()
	}
}

// perform does at the target what the operation asks for, or begins it.
func (fl *flight) perform() {
	e := fl.e
	if e.link.state != linkUp {
		fl.flush()
		return
	}
	if s := fl.permit(); s != transport.StatusOK {
		fl.fail(s)
		return
	}
	f, now := e.d.f, e.now()
	m := &f.model
	there := e.peer.port()
	switch fl.op.Kind {
	case transport.OpRead:
		// The bytes are those of this moment. They are moved at once: the destination is the NIC's until the end.
		scatter(fl.op.SGE[:fl.op.NSGE], fl.dst)
		f.note(noteRead, e.d.rank, e.peer.rank, fl.bytes)
		start := max(now+m.Read.Target, there.out)
		there.out = start + m.Read.Gap + m.PerByte.of(fl.bytes)
		e.at(start+e.latency, fl, stageReturn)
	case transport.OpFetchAdd, transport.OpCompareSwap:
		fl.old = apply(fl.dst, &fl.op)
		f.note(noteAtomic, e.d.rank, e.peer.rank, 8)
		e.peer.sched.Ring()
		there.atomic = max(now, there.atomic) + m.Atomic.Target
		e.at(there.atomic+e.latency, fl, stageDone)
	default:
		fl.begin = max(now, there.in) + m.cost(fl.op.Kind).Target
		there.in = fl.begin + m.PerByte.of(fl.bytes)
		if fl.op.Kind == transport.OpWrite && f.cfg.Faults.Reorder {
			fl.begin += f.delay() // what was accepted in order may become visible in any
		} else {
			e.landing = true
		}
		fl.nextPiece()
	}
}

// permit checks the keys, here and at the target.
func (fl *flight) permit() transport.Status {
	op, e := &fl.op, fl.e
	need := transport.Access(0)
	if fl.fetches() {
		need = transport.LocalWrite
	}
	if op.Flags&transport.FlagInline == 0 {
		for i := range op.SGE[:op.NSGE] {
			if s := &op.SGE[i]; e.d.table.local(s.Mem, s.LKey, need) == nil {
				return transport.StatusLocalAccess
			}
		}
	}
	right := transport.RemoteWrite
	switch op.Kind {
	case transport.OpRead:
		right = transport.RemoteRead
	case transport.OpFetchAdd, transport.OpCompareSwap:
		right = transport.RemoteAtomic
	case transport.OpSend:
		buf := fl.recv.Buf
		switch {
		case fl.bytes > buf.Mem.Bytes:
			return transport.StatusTooLong
		case e.peer.table.local(buf.Mem, buf.LKey, transport.LocalWrite) == nil:
			return transport.StatusRemoteAccess
		}
		fl.dst = buf.Mem.Slice(0, fl.bytes)
		return transport.StatusOK
	}
	var ok bool
	if fl.dst, ok = e.peer.table.remote(op.RAddr, op.RKey, fl.bytes, right); !ok {
		return transport.StatusRemoteAccess
	}
	return transport.StatusOK
}

// nextPiece waits for the next piece of a payload to land.
func (fl *flight) nextPiece() {
	m := &fl.e.d.f.model
	end := fl.bytes
	if m.Fragment > 0 {
		end = min(end, fl.landed+m.Fragment)
	}
	fl.e.at(fl.begin+m.PerByte.of(end), fl, stageLand)
}

// land stores a piece of the payload in the target's memory; with the last one the operation is done there.
func (fl *flight) land() {
	e := fl.e
	f := e.d.f
	loose := fl.op.Kind == transport.OpWrite && f.cfg.Faults.Reorder // an error behind it does not hold it up
	if e.link.state == linkGone || e.link.state == linkBroken && !loose {
		fl.flush()
		return
	}
	end := fl.bytes
	if f.model.Fragment > 0 {
		end = min(end, fl.landed+f.model.Fragment)
	}
	if fl.op.Kind != transport.OpSend && !fl.still() {
		fl.fail(transport.StatusRemoteAccess)
		return
	}
	gather(fl.dst.Slice(fl.landed, end-fl.landed), fl.op.SGE[:fl.op.NSGE], fl.landed)
	f.note(noteLand, e.d.rank, e.peer.rank, end)
	if fl.landed = end; end < fl.bytes {
		e.peer.sched.Ring()
		fl.nextPiece()
		return
	}
	if fl.op.Kind == transport.OpWrite {
		e.peer.sched.Ring()
	} else {
		fl.deliver(transport.StatusOK)
	}
	e.at(e.now()+e.latency, fl, stageDone)
	if !loose {
		e.landing = false
		e.serve()
	}
}

// still reports whether the target's registration has not ended while the payload was on its way.
func (fl *flight) still() bool {
	_, ok := fl.e.peer.table.remote(fl.op.RAddr, fl.op.RKey, fl.bytes, transport.RemoteWrite)
	return ok
}
