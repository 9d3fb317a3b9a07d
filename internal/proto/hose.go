package proto

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"gopgas/firehose"
	"gopgas/internal/am"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// hoseCookie marks the cookies of messages about firehoses; the low bits are the handler and the rank asked.
const hoseCookie = 1 << 62

func cookieOf(handler uint8, rank int) uint64 {
	return hoseCookie | uint64(handler)<<32 | uint64(uint32(rank))
}

// saidTo is cookieOf's inverse.
func saidTo(cookie uint64) (handler uint8, rank int) { return uint8(cookie >> 32), int(uint32(cookie)) }

// hoseKey is the key by which messages name a range that has no key of the NIC. NICs do not draw keys so large.
func hoseKey(id uint32) uint64 { return 1<<63 | uint64(id) }

// hosed is a member's part that is registered in buckets.
type hosed struct {
	r firehose.Range
	v *firehose.View // what the holder knows of r, once it was asked; under nic.mu
}

// hoses is the part of a nic that reaches memory which is larger than what may be registered.
type hoses struct {
	n      *nic
	budget firehose.Budget
	server *firehose.Server

	holder *firehose.Holder   // under nic.mu, with all below
	q      []firehose.Request // by piece
	out    []outgoing
	asked  []bool // by rank: moves were sent there
	ahead  *foresight
	costs  firehose.Costs
	fixed  int     // not 0: the order of the buckets of new views, plus one
	known  bool    // costs were asked for
	trip   float64 // the shortest move so far, without registrations, nanoseconds; 0: none

	fetchers sync.Pool // of *fetcher

	work  atomic.Bool // moves may have to be sent
	mu    sync.Mutex
	parts map[uint32]mem.Range // under mu, with all below
	next  uint32
	keys  map[uint64]lent // by ID
}

// outgoing is a move, an answer that could not be given at once, or the end of both, on its way into a message.
type outgoing struct {
	rank    int
	handler uint8
	bytes   []byte
}

// prepareMemory divides what the NIC may register beside its buffers: one budget for this rank's own transfers and for
// what others hold firehoses on.
func (n *nic) prepareMemory(r Registration) error {
	limit := n.pinnable()
	if r.Bytes == 0 || limit > 0 && r.Bytes > limit {
		r.Bytes = limit
	}
	if err := n.prepareDirect(r); err != nil || n.am == nil {
		return err
	}
	var err error
	n.hoses, err = newHoses(n, r.Bytes)
	return err
}

// pinnable is what the NIC may register beside its buffers, bytes; 0: it has no limit.
func (n *nic) pinnable() int64 {
	if n.caps.MaxPinned <= 0 {
		return 0
	}
	fixed := int64(n.pool.Bytes() + n.scratch.Bytes + n.bulk.footprint() + 8*os.Getpagesize())
	if n.am != nil {
		fixed += int64(n.am.Footprint())
	}
	return max(1, n.caps.MaxPinned-fixed)
}

// newHoses makes the account of a budget of so many bytes. It returns nil where the NIC has no limit, and where a write's
// completion does not mean that the target's memory may be let go.
func newHoses(n *nic, budget int64) (*hoses, error) {
	payload := n.am.MaxPayload()
	if n.caps.MaxPinned <= 0 || n.caps.FlushByRead || payload < firehose.LeastPayload {
		return nil, nil
	}
	page := int64(os.Getpagesize())
	l := firehose.Limits{Ranks: n.e.Size, Pinnable: budget, Page: page, Unit: max(32<<10, page)}
	for n.caps.MaxRegions > 0 && l.Pinnable/l.Unit > int64(n.caps.MaxRegions)/2 {
		l.Unit *= 2 // each bucket is a registration
	}
	b, err := firehose.Split(l)
	if err != nil {
		return nil, err
	}
	h := &hoses{
		n: n, budget: b, q: make([]firehose.Request, pieces), next: 1,
		parts: make(map[uint32]mem.Range), keys: make(map[uint64]lent), asked: make([]bool, n.e.Size),
	}
	h.server = firehose.NewServer(b, h, n.direct.reg.Uses)
	n.leases.room.buckets = h.server
	if h.holder, err = firehose.NewHolder(firehose.HolderConfig{Budget: b, Payload: payload}); err == nil {
		h.foresee()
	}
	return h, err
}

// viewLocked returns the view of r's memory.
func (h *hoses) viewLocked(r *Remote) (v *firehose.View, err error) {
	if v = r.hosed.v; v == nil {
		v, err = h.holder.View(r.Rank, r.hosed.r)
		if err == nil && h.fixed != 0 {
			err = h.holder.Fix(v, uint8(h.fixed-1))
		}
		if err == nil {
			r.hosed.v = v
		}
	}
	return v, err
}

// lent is a bucket's registration.
type lent struct {
	key transport.Region
	mem mem.Range
}

// expose lets peers ask for buckets of r.
func (h *hoses) expose(r mem.Range) (uint32, error) {
	h.mu.Lock()
	id := h.next
	h.next++
	h.parts[id] = r
	h.promiseLocked()
	h.mu.Unlock()
	h.n.direct.reg.KeepPromise()
	if err := h.server.Expose(firehose.Range{ID: id, Start: r.Addr(), Bytes: uint64(r.Bytes)}); err != nil {
		return 0, err
	}
	h.n.know(hoseKey(id), r)
	return id, nil
}

// withdraw ends what expose began, and this rank's use of the other members' parts. It returns when no peer holds
// buckets any more; the members call it together. Ranks that have parted (Engine.Part) have nothing in flight and send
// nothing any more: then each takes back what was held of it by itself.
func (h *hoses) withdraw(id uint32, others []Remote) error {
	h.leave(others)
	h.n.forget(hoseKey(id))
	h.server.Withdraw(id)
	parted := h.n.ctx.Err() != nil
	err := h.n.waitAlone("free", func() bool {
		for r := range h.n.e.Size {
			if parted || h.n.e.Peers.AnyGone() && h.n.e.Peers.Check(r) != nil {
				h.server.Lost(r)
			}
		}
		// What this rank gives up must be on its way: when it waits no longer nobody may look after that for long.
		return h.server.Withdrawn(id) && (parted || !h.work.Load())
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.parts, id)
	h.promiseLocked()
	return err
}

// promiseLocked keeps the peers' part of the budget for them as long as they may ask for it.
func (h *hoses) promiseLocked() {
	if len(h.parts) == 0 {
		h.n.direct.reg.Promise(0, 0)
		return
	}
	units := h.budget.Share * int64(h.budget.Ranks-1)
	h.n.direct.reg.Promise(units<<h.budget.Shift, int(units))
}

// leave gives up what this rank holds of parts that are about to be freed.
func (h *hoses) leave(others []Remote) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	for i := range others {
		if o := &others[i]; o.hosed != nil {
			h.holder.Withdraw(o.Rank, o.hosed.r.ID)
		}
	}
	h.work.Store(true)
}

// Register implements firehose.Registrar: each bucket is a registration of its own, made under regmgr's budget.
func (h *hoses) Register(r firehose.Range, run firehose.Run, pins []firehose.Pin) error {
	h.mu.Lock()
	whole := h.parts[r.ID]
	h.mu.Unlock()
	for i := range pins {
		off, n := r.Extent(h.budget.Shift, run.At(uint32(i)))
		part := whole.Slice(int(off), int(n))
		reg, err := h.n.direct.reg.Lend(part, transport.AllAccess)
		if err != nil {
			_ = h.Deregister(r, run, pins[:i]) // the first error is the one to tell
			return err
		}
		pins[i] = firehose.Pin{Key: reg.RKey, Handle: reg.ID}
		h.mu.Lock()
		h.keys[reg.ID] = lent{reg, part}
		h.mu.Unlock()
	}
	return nil
}

// Deregister implements firehose.Registrar.
func (h *hoses) Deregister(_ firehose.Range, _ firehose.Run, pins []firehose.Pin) error {
	var first error
	for _, p := range pins {
		h.mu.Lock()
		l := h.keys[p.Handle]
		delete(h.keys, p.Handle)
		h.mu.Unlock()
		if err := h.n.direct.reg.Return(l.key, l.mem); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Move implements firehose.Mover. The caller holds nic.mu, so the message is only written here, and sent by send.
func (h *hoses) Move(rank int, m *firehose.Move) (bool, error) {
	h.asked[rank] = true
	h.out = append(h.out, outgoing{rank, askMove, m.Append(nil)})
	return true, nil
}

// progress goes on with what could not be done at once. It is called by the poller.
func (h *hoses) progress() {
	for {
		var r firehose.Reply
		rank, m, ok := h.server.Resume(&r)
		if !ok {
			break
		}
		b := h.finish(&m, &r, nil)
		h.tell(rank, askMoved, b)
	}
	if h.work.Load() {
		h.send()
	}
}

// send sends what waits to be sent, as long as there is room. No lock is held while the NIC is at it.
func (h *hoses) send() {
	h.n.mu.Lock()
	h.work.Store(h.holder.Send(h))
	left := len(h.out)
	for ; left > 0; left-- {
		o := h.out[0]
		h.out = h.out[1:]
		h.n.mu.Unlock()
		sent, err := h.post(&o)
		if err != nil {
			h.failed(o.handler, o.rank, err)
		}
		h.n.mu.Lock()
		if !sent && err == nil {
			h.out = append(h.out, o) // their order does not matter
			h.work.Store(true)
		}
		left = min(left, len(h.out)+1) // others send too
	}
	h.n.mu.Unlock()
}

// serve is the handler of a move.
func (h *hoses) serve(r am.Request, out []byte) (int, uint8) {
	var m firehose.Move
	var reply firehose.Reply
	if r.From < 0 || r.From >= h.n.e.Size || m.Parse(r.Payload) != nil {
		return 0, statusMalformed
	}
	if !h.server.Serve(r.From, &m, &reply) {
		return 0, statusOK
	}
	return len(h.finish(&m, &reply, out[:0])), statusOK
}

// finish stores a move's put and appends the wire form of its answer to b.
func (h *hoses) finish(m *firehose.Move, r *firehose.Reply, b []byte) []byte {
	if r.Stored {
		h.mu.Lock()
		part := h.parts[m.Put.Range]
		h.mu.Unlock()
		store(part.Slice(int(m.Put.Off), len(m.Put.Data)), mem.Of(m.Put.Data)) // the Server has checked the bounds
	}
	return r.Append(b)
}

// moved is the handler of an answer that comes by itself.
func (h *hoses) moved(r am.Request) (int, uint8) {
	if r.From < 0 || r.From >= h.n.e.Size || h.reply(r.From, r.Payload) != nil {
		return 0, statusMalformed
	}
	return 0, statusOK
}

// answered takes in the reply to a message; that to a move may be empty, and its answer comes by itself.
func (h *hoses) answered(r am.Reply, err error) {
	handler, rank := saidTo(r.Cookie)
	if err == nil && r.Status != statusOK {
		err = fmt.Errorf("%w: status %d", firehose.ErrMove, r.Status)
	}
	if err == nil && handler == askMove && len(r.Payload) > 0 {
		err = h.reply(rank, r.Payload)
	}
	if err != nil {
		h.failed(handler, rank, err)
	}
}

func (h *hoses) reply(rank int, b []byte) error {
	var r firehose.Reply
	if err := r.Parse(b); err != nil {
		return err
	}
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.work.Store(true)
	return h.holder.Reply(rank, &r)
}
