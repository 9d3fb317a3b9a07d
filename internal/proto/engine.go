package proto

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gopgas/internal/hose"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/internal/seats"
	"gopgas/internal/timeline"
	"gopgas/internal/trace"
	"gopgas/transport"
)

// Engine carries out the operations of one rank.
type Engine struct {
	Rank, Size int
	Sched      *sched.Sched
	Peers      *peers.Table
	Nodes      []int // the node of each rank, numbered from 0

	mapper transport.Mapper       // nil: no memory is mapped
	device atomic.Pointer[opened] // nil: all peers are mapped
	config Config

	chains  chains // of operations on their way to the NIC together
	lists   lists  // of elements on their way to their owners together
	commons commons
	peeked  peeked
	opening sync.Mutex
	count   bool // count operations on mapped memory too
	record  *Recording
	counts  counters
	blocks  []Remote     // the rank blocks, by rank; set by Join
	board   *seats.Board // of this node's registration helpers
	ends    calls        // what must happen before the memory is unmapped
	deaths  calls        // who is told when some rank is gone
	made    calls        // what gives back memory that this rank has made, and not given back
}

// Config is what an Engine is made of.
type Config struct {
	Rank, Size int
	Sched      *sched.Sched
	Peers      *peers.Table
	Mapper     transport.Mapper // nil: PGAS_LOCAL=off
	NICName    string
	// OpenNIC opens the NIC called NICName when memory is exposed that cannot be mapped; nil: there is none. The ranks
	// tell each other its address with the keys of such memory.
	OpenNIC func(context.Context) (transport.Domain, error)
	Nodes   []int // the node of each rank, numbered from 0
	Slots   int   // bounce buffers of the NIC path; 0: 64
	// CountMapped makes operations on mapped memory go through the engine, so that they are counted, and counts all
	// operations by target too; without it they are inlined in the caller and leave no trace.
	CountMapped bool
	// Room says why there is no room for so many bytes of memory that no mapper makes; nil: nobody is asked. Go's own allocator would end the program.
	Room func(bytes int) error
	// Twice has memory that no mapper makes be of a kind that can be mapped a second time (package touch), where that is possible.
	Twice bool
	// Registration is how the memory of large transfers over the NIC is registered.
	Registration Registration
	// Eager and Bulk say how small and large transfers over the NIC travel; the zero values leave it to the costs.
	Eager Eager
	Bulk  Bulk
	// Kept is where what they cost is kept from one job to the next.
	Kept Kept
	// Leases is how many transfers this rank takes in at once into memory that it has not registered; 0: 4, negative: none, such
	// transfers go by messages.
	Leases int
	// Record takes down what the engine does, on mapped memory too: it all goes through the engine then. nil: nothing.
	Record *Recording
}

// New returns the engine of a rank.
func New(c Config) *Engine {
	e := &Engine{
		Rank: c.Rank, Size: c.Size, Sched: c.Sched, Peers: c.Peers,
		Nodes: c.Nodes, mapper: c.Mapper, count: c.CountMapped || c.Record != nil, record: c.Record, config: c,
	}
	if c.CountMapped {
		e.counts.flows = make([]flow, c.Size)
	}
	e.board = e.newBoard()
	return e
}

// openNIC opens the NIC if there is none yet and one can be had. It is called by collective calls only, one at a time
// on a team; a lock of its own keeps those of different teams apart.
func (e *Engine) openNIC(ctx context.Context) error {
	if err := e.enter(ctx, &e.opening); err != nil {
		return err
	}
	defer e.leave(&e.opening)
	if e.nic() != nil || e.config.OpenNIC == nil {
		return nil
	}
	d, err := e.config.OpenNIC(ctx)
	if err != nil {
		return fmt.Errorf("open the %s NIC: %w", e.config.NICName, err)
	}
	o, err := newDevice(e, d)
	if err != nil {
		return errors.Join(fmt.Errorf("set up the %s NIC: %w", e.config.NICName, err), d.Close())
	}
	e.device.Store(o)
	return nil
}

// enter locks m, which may be held for long, and by a goroutine of this rank that waits.
func (e *Engine) enter(ctx context.Context, m *sync.Mutex) error {
	sp := e.Sched.Begin(ctx, sched.What{Op: "open the NIC", Peer: -1}, nil)
	defer sp.End()
	for !m.TryLock() {
		if err := sp.Step(); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) leave(m *sync.Mutex) {
	m.Unlock()
	e.Sched.Ring()
}

func (e *Engine) nic() *device {
	o := e.device.Load()
	if o == nil {
		return nil
	}
	return &o.device
}

// NIC returns the name of the NIC in use, or "".
func (e *Engine) NIC() string {
	if e.nic() == nil {
		return ""
	}
	return e.nic().Name
}

// Mapper returns the mapper in use, or nil.
func (e *Engine) Mapper() transport.Mapper { return e.mapper }

// CountsMapped reports whether operations on mapped memory must go through the engine.
func (e *Engine) CountsMapped() bool { return e.count }

// Part ends what runs beside the program and takes this rank's waits and its table of peers out of shared memory, so
// that the memory can be unmapped. Afterwards nothing but Close may be called. The peers have agreed to part too.
func (e *Engine) Part() {
	for _, f := range e.ends.takeAll() {
		f()
	}
	if n := e.nic(); n != nil {
		n.Quit()
	}
	e.Sched.DropBell()
	if e.board != nil {
		e.board.Close() // a helper may be at work still
	}
	e.blocks = nil
	e.Peers.Part()
}

// Close releases the NIC and the mapper. Outstanding operations end in errors.
func (e *Engine) Close() error {
	var first error
	if e.nic() != nil {
		first = e.nic().close()
	}
	if e.mapper != nil {
		if err := e.mapper.Close(); first == nil {
			first = err
		}
	}
	return e.unmake(first)
}

// Join moves what this rank knows of the others' lives into its block in shared memory, announces the rank as up, and makes its
// waits sleep on the block's bell. blocks are the rank blocks by rank.
func (e *Engine) Join(local mem.Range, blocks []Remote) {
	e.blocks = blocks
	e.Peers.Join(e.Sched, local, func(rank int) mem.Range { return blocks[rank].Mapped })
	e.openBoard(local, blocks)
	e.Peers.Announce()
}

// Remote is one member's part of an Exposure as this rank reaches it.
type Remote struct {
	Rank     int       // in the world
	Bytes    int       // how much the member exposes
	Mapped   mem.Range // empty: through the NIC
	raddr    uint64
	rkey     uint64
	keyed    bool // the member has registered it, so that the NIC may touch it
	room     int  // bytes from raddr on that the NIC may touch, at least Bytes: a block ends on a larger boundary
	measured bool // this rank's own, which costs are measured with: no transfer of the program's
	offered  bool // the member exposes it to nobody but for a call: its NIC reaches it, and no message asks its CPU for it
	peeked   bool // likewise, and the kernel copies from it
	shows    bool // what is stored there, and atomics, tell that what was put to that rank before has arrived: see Shows
	// nicAtomics: some member is not mapped by all, so atomics are the NIC's even where memory is mapped (P1).
	nicAtomics bool
	hosed      *hose.Far // not nil: the member's memory is registered in buckets, on demand
	traced     *traced   // not nil: what a trace says of it
}

// Put copies src to byte off of the member's memory. The caller has checked the bounds. src may be reused on
// return; the bytes are visible at the target after a Flush.
func (e *Engine) Put(r *Remote, off int, src mem.Range) error {
	switch n := e.nic(); {
	case e.record != nil:
		return e.putRecorded(r, off, src)
	case r.Mapped.Bytes != 0:
		return e.put(r, off, src)
	case n.isPlain(leastPut, r, src.Bytes):
		n.small.habits.Other()
		laid, err := n.layInline(nic.OpPut, r, off, src, 0)
		if err != nil {
			return err
		}
		return n.Send(nic.OpPut, laid)
	default:
		return n.putChosen(r, off, src)
	}
}

// putRecorded is Put that is taken down.
func (e *Engine) putRecorded(r *Remote, off int, src mem.Range) error {
	event, mark := e.record.begin(trace.Put, r, off, src)
	err := e.put(r, off, src)
	e.record.end(&event, mark)
	return err
}

func (e *Engine) put(r *Remote, off int, src mem.Range) error {
	if r.Mapped.Bytes != 0 {
		mem.Copy(r.Mapped.Slice(off, src.Bytes).Data(), src.Data())
		e.Sched.ChargeCopy(src.Bytes, src.Bytes)
		e.note(PathMapped, r.Rank, src.Bytes)
		return nil
	}
	return e.nic().putUser(r, off, src)
}

// Get copies from byte off of the member's memory to dst and returns when it is there.
func (e *Engine) Get(r *Remote, off int, dst mem.Range) error {
	switch n := e.nic(); {
	case e.record != nil:
		return e.getRecorded(r, off, dst)
	case r.Mapped.Bytes != 0:
		return e.get(r, off, dst)
	case n.isPlain(leastGet, r, dst.Bytes):
		n.small.habits.Other()
		return n.get(r, off, dst)
	default:
		return n.getChosen(r, off, dst)
	}
}

// getRecorded is Get that is taken down.
func (e *Engine) getRecorded(r *Remote, off int, dst mem.Range) error {
	event, mark := e.record.begin(trace.Get, r, off, dst)
	err := e.get(r, off, dst)
	e.record.end(&event, mark)
	return err
}

func (e *Engine) get(r *Remote, off int, dst mem.Range) error {
	if r.Mapped.Bytes != 0 {
		mem.Copy(dst.Data(), r.Mapped.Slice(off, dst.Bytes).Data())
		e.Sched.ChargeCopy(dst.Bytes, dst.Bytes)
		e.note(PathMapped, r.Rank, dst.Bytes)
		return nil
	}
	return e.nic().getUser(r, off, dst)
}

// Load64 returns the 8-byte word at off, read at once.
func (e *Engine) Load64(r *Remote, off int) (uint64, error) {
	if r.Mapped.Bytes != 0 {
		e.note(PathMapped, r.Rank, 8)
		return r.Mapped.Word64(off).Load(), nil
	}
	if r.hosed != nil {
		var word [1]uint64
		err := e.nic().hosedGet("get", r, off, mem.Of(word[:]))
		return word[0], err
	}
	return e.nic().load64(r, off)
}

// GetNB begins a Get. dst belongs to the engine until the handle is done.
func (e *Engine) GetNB(r *Remote, off int, dst mem.Range) (Handle, error) {
	if e.record == nil {
		return e.getNB(r, off, dst)
	}
	event, mark := e.record.begin(trace.Get, r, off, dst)
	h, err := e.getNB(r, off, dst)
	e.record.started(&event, mark, h)
	return h, err
}

func (e *Engine) getNB(r *Remote, off int, dst mem.Range) (Handle, error) {
	if r.Mapped.Bytes != 0 {
		return Handle{}, e.get(r, off, dst)
	}
	n := e.nic()
	h, begun, err := n.startUser(journey{name: "get", kind: transport.OpRead, r: r, off: off, path: PathDirect}, dst)
	if begun || err != nil {
		return h, err
	}
	if r.hosed != nil {
		return Handle{}, n.get(r, off, dst) // the handle is done already
	}
	return n.getNB(r, off, dst)
}

// Flush returns when all earlier puts of this rank to the member's rank are visible there. Its error is the
// first of an earlier operation to that rank that failed.
func (e *Engine) Flush(r *Remote) error { return e.FlushContext(context.Background(), r) }

// FlushContext is Flush that ends with ctx, too; what is under way goes on.
func (e *Engine) FlushContext(ctx context.Context, r *Remote) error {
	n := e.nic()
	if r.Mapped.Bytes != 0 || n == nil { // without a NIC only an empty part is not mapped
		mem.FullFence()
		if n == nil || !r.nicAtomics && !n.Pending(r.Rank) {
			return nil
		} // else accumulates to it are on their way, or what goes to other memory of that rank, which is not mapped
	}
	switch {
	case e.record != nil:
		return e.flushRecorded(ctx, r)
	case n.small.habits.Awaiting():
		return n.flushNoted(ctx, r.Rank)
	default:
		return n.Flush(ctx, r.Rank)
	}
}

// flushRecorded is FlushContext that is taken down.
func (e *Engine) flushRecorded(ctx context.Context, r *Remote) error {
	n := e.nic()
	v := e.record.visit(timeline.Transfer, "flush", r.Rank)
	err := n.flush(ctx, r.Rank)
	e.record.over(&v, 0)
	return err
}

// Order makes earlier puts to the member's rank visible before later ones; it does not wait where the
// transport keeps order.
func (e *Engine) Order(r *Remote) error {
	if e.inOrder(r) {
		return nil
	}
	return e.nic().flush(context.Background(), r.Rank)
}

// Store64 writes v to the 8-byte word at off, after all earlier puts of this rank to the same rank, and wakes
// the target if it sleeps. It is how signals and flags travel.
func (e *Engine) Store64(r *Remote, off int, v uint64) error {
	if err := e.before(r); err != nil {
		return err
	}
	if r.Mapped.Bytes != 0 {
		r.Mapped.Word64(off).Store(v)
		e.Peers.Ring(r.Rank)
		e.note(PathMapped, r.Rank, 8)
		return nil
	}
	return e.nic().store64("signal", r, off, v, false)
}

// StoreInTime is Store64 of what nobody waits for at present: where a post of its own would take this rank as long as one that is waited for, it goes with what the rank
// posts next, or a few milliseconds later.
func (e *Engine) StoreInTime(r *Remote, off int, v uint64) error {
	if r.Mapped.Bytes != 0 || e.nic() == nil {
		return e.Store64(r, off, v)
	}
	if err := e.before(r); err != nil {
		return err
	}
	return e.nic().store64("signal", r, off, v, true)
}

// StoreWords writes a few words at off, for a Store64 behind it to the same rank to show. They may go with that, and not before.
func (e *Engine) StoreWords(r *Remote, off int, words []uint64) error {
	if r.Mapped.Bytes == 0 {
		return e.nic().wordsAhead("signal", r, off, mem.Of(words))
	}
	for i, v := range words {
		mem.Publish(r.Mapped.Word64(off+8*i), v)
	}
	e.note(PathMapped, r.Rank, 8*len(words))
	return nil
}

// PutAhead is PutNB of what a Store64 behind it to the same rank shows, and may go with that, and not before. The member is not mapped.
func (e *Engine) PutAhead(op string, r *Remote, off int, src mem.Range) (Handle, error) {
	if e.record == nil {
		return e.nic().putAhead(op, r, off, src)
	}
	event, mark := e.record.begin(trace.Put, r, off, src)
	h, err := e.nic().putAhead(op, r, off, src)
	e.record.started(&event, mark, h)
	return h, err
}

// PutShown is Put of what a Store64 or SignalAdd behind it to the same rank shows: what is copied goes with that, in one post, and not before.
func (e *Engine) PutShown(op string, r *Remote, off int, src mem.Range) error {
	if r.Mapped.Bytes == 0 && !e.nic().InOrder(r.Rank) {
		return e.putAwaited(r, off, src)
	}
	if r.Mapped.Bytes != 0 || !e.nic().copiesAhead(r, src.Bytes) {
		return e.Put(r, off, src)
	}
	_, err := e.PutAhead(op, r, off, src)
	return err
}

// SetOut has what PutAhead holds back set out before the Store64 behind it, where the NIC moves it beside the program.
func (e *Engine) SetOut() {
	if n := e.nic(); n != nil && !n.Caps.Busy && n.HeldBack() > 0 {
		n.Progress()
	}
}

// Prompt reports whether what is posted sets out at once, as on hardware and through a socket, and waits for no thread that may have to get up first.
func (e *Engine) Prompt() bool {
	n := e.nic()
	return n != nil && (!n.Caps.Busy || n.Hastens())
}

// Hush tells the NIC, where it wants to know, how the caller polls for what he posts: sched.Steadily before the post, when a wait follows at once, and
// sched.NoMore when that is over.
func (e *Engine) Hush(how sched.Polling) {
	if n := e.nic(); n != nil && n.Hushable() != nil {
		n.Hushable().Hush(how)
	}
}

// Busy reports whether what the NIC does takes this machine's processors, as one that is a program does.
func (e *Engine) Busy() bool {
	n := e.nic()
	return n != nil && n.Caps.Busy
}

// Abandon closes the NIC at once, so that the peers learn that this rank has ended. Only for a rank that failed.
func (e *Engine) Abandon() {
	if e.nic() != nil {
		_ = e.nic().close()
	}
}

// TellNodes has the ranks of other nodes told who is gone, when this rank has seen the end of one of its own node: of those that had
// no connection with that one nobody else would hear.
func (e *Engine) TellNodes() {
	if n := e.nic(); n != nil && !n.Closed() {
		n.News()
	}
}

// Vanished is told that the process of a rank of this node has ended: it marks a rank that had not left, and has the others told.
func (e *Engine) Vanished(rank int) {
	if s, ok := e.Peers.StateOf(rank); ok && s == peers.Left {
		return
	}
	e.Peers.MarkGone(rank, peers.Vanished)
	e.TellNodes()
}

// Alive returns an error when this rank's own NIC was closed or has failed: no wait on it can end then.
func (e *Engine) Alive() error {
	if n := e.nic(); n != nil && n.Closed() {
		return nic.ErrOwnEnd
	}
	return nil
}

// NoteWait counts a wait that ended, if it went past its spinning phase.
func (e *Engine) NoteWait(sp *sched.Spin, r *Remote) {
	switch {
	case !sp.Slept():
	case r.Mapped.Bytes != 0:
		e.counts.waited(PathMapped)
	default:
		e.counts.waited(PathInline)
	}
}
