package nic

import (
	"encoding/binary"
	"fmt"

	"gopgas/internal/am"
	"gopgas/internal/inflight"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// FirstCookie is the first by which the client may know its own requests; those below are pieces.
const FirstCookie = 1 << 32

// messageCookies and up are completions of active messages.
const messageCookies = 1 << 63

// Listen makes the NIC take and send messages, if it can: Payload is not 0 then. more is how many receive buffers it needs beside
// those of messages. It is called before Start, once.
func (n *NIC) Listen(more int) (err error) {
	if !n.Caps.Sends || n.Caps.MaxMessage < am.LeastMessage {
		return nil
	}
	if n.am, err = am.New(n.Domain, n.rank, len(n.ends), more, messageCookies, n.serve); err != nil {
		return err
	}
	n.Payload = n.am.MaxPayload()
	return nil
}

// serve has the client perform a request. Its answer goes out before the poller is through with what there is, and who has it may tell this rank.
func (n *NIC) serve(r am.Request, out []byte) (bytes int, status uint8) {
	bytes, status = n.client.Handle(r, out)
	n.sched.Served()
	return bytes, status
}

// Ask sends a request for piece id, whose answer settles it: one that is kept, or fetches, gets the payload. It waits for a connection and a
// credit. payload may be reused on return. On an error the piece is free again.
func (n *NIC) Ask(name string, id int32, handler uint8, args [4]uint64, payload mem.Range) error {
	return n.ask(name, id, handler, args, payload, transport.SGE{})
}

// Gathers reports whether the NIC can take a message from two places: then AskLent is possible.
func (n *NIC) Gathers() bool { return n.Payload != 0 && n.Caps.MaxSGE >= 2 }

// AskLent is Ask with a payload, which is not empty, that the NIC takes from where it lies: it is lent until the client is told that the piece
// has landed (N1).
func (n *NIC) AskLent(name string, id int32, handler uint8, args [4]uint64, payload transport.SGE) error {
	return n.ask(name, id, handler, args, mem.Range{}, payload)
}

// ask sends a request with one of two payloads; the first one may lie on a stack.
func (n *NIC) ask(name string, id int32, handler uint8, args [4]uint64, payload mem.Range, lent transport.SGE) error {
	rank := n.table.Piece(id).Rank
	e := n.ends[rank]
	e.asked.Add(1)
	var sent bool
	var refused, err error
	try := func() bool {
		if _, ok := n.tryEnter(e); !ok {
			return e.state.Load() == epNone
		}
		defer n.leave(e)
		if !n.push() {
			return false
		}
		if lent.Mem.Bytes > 0 {
			sent, refused = n.am.Gather(e.now(), rank, handler, args, lent, uint64(id))
		} else {
			sent, refused = n.am.Request(e.now(), rank, handler, args, payload.Data(), uint64(id))
		}
		return sent || refused != nil
	}
	for !sent && refused == nil && err == nil {
		if err = n.Connect(name, rank); err == nil { // it is the request's sending that must not be cut off, not its wait for a credit
			err = n.WaitUntil(name, rank, try)
		}
	}
	if sent {
		return nil
	}
	if err == nil {
		err = transport.NewOpError(name, rank, refused)
	}
	e.asked.Add(-1)
	n.Abandon(id)
	return err
}

// TryAsk sends a request of the client's own if there are a connection and a credit now; it waits for nothing, but has a connection
// made. What becomes of it Client.Answered is told, or GaveUp, with cookie, which is FirstCookie at least.
func (n *NIC) TryAsk(rank int, handler uint8, args [4]uint64, payload []byte, cookie uint64) (sent bool, err error) {
	e := n.ends[rank]
	if _, ok := n.tryEnter(e); !ok {
		n.want(rank)
		return false, nil
	}
	defer n.leave(e)
	if !n.push() {
		return false, nil // what was put before goes before
	}
	return n.am.Request(e.now(), rank, handler, args, payload, cookie)
}

// Unask ends the client's requests to rank that are under way and whose cookies have a bit of mask, and returns their cookies: of these
// there will be no answer.
func (n *NIC) Unask(rank int, mask uint64) []uint64 { return n.am.Drop(rank, mask) }

// arrived handles the completion of an active message.
func (n *NIC) arrived(c *transport.Completion) {
	r, ok, err := n.am.Arrived(c)
	if !ok {
		return // a request, done; or one that is nobody's, which is the sender's fault
	}
	if err != nil && c.Status == transport.StatusFlushed {
		err = n.brokenError(int(c.EP.Index), err) // it was sent before: it may have arrived
	}
	if err != nil && c.Status == transport.StatusOK {
		err = n.lostError(int(c.EP.Index), err)
	}
	if r.Cookie >= FirstCookie {
		n.client.Answered(r, err)
	} else {
		n.answered(int32(r.Cookie), &r, err)
	}
	_ = n.am.Release(r) // fails only when the NIC is closing
}

// again sends messages again that wait for a connection.
func (n *NIC) again() {
	for _, u := range n.am.Again(n.route) {
		err := n.lostError(u.Rank, am.ErrLost)
		if u.Cookie >= FirstCookie {
			n.client.GaveUp(u.Rank, []uint64{u.Cookie}, err)
		} else {
			n.answered(int32(u.Cookie), nil, err)
		}
	}
}

// lostError is err, of a request to a rank that was given up, or why that was if the rank is gone.
func (n *NIC) lostError(rank int, err error) error {
	if gone := n.peers.Check(rank); gone != nil {
		return gone
	}
	return n.brokenError(rank, err)
}

// brokenError is err, of a request over a connection that has broken, and why there is no other one if that was tried.
func (n *NIC) brokenError(rank int, err error) error {
	n.mu.Lock()
	why := n.ends[rank].why
	n.mu.Unlock()
	if why != nil {
		return fmt.Errorf("%w: %w: %w", ErrConnectionLost, err, why)
	}
	return fmt.Errorf("%w: %w", ErrConnectionLost, err)
}

// answered settles a piece that was asked for.
func (n *NIC) answered(id int32, r *am.Reply, err error) {
	if err == nil && r.Status != 0 {
		err = ErrRefused
	}
	p := n.table.Piece(id)
	if err == nil && n.table.Fetched(id) && len(r.Payload) == 8 {
		p.Dst.SetBits(binary.LittleEndian.Uint64(r.Payload))
	}
	if err == nil && p.Has(inflight.Kept) {
		// A reply that does not fit was not made by this program; what fits is as wrong as the rest.
		buf, _ := n.Buffer(id, min(len(r.Payload), n.table.Capacity(id)))
		copy(buf.Data(), r.Payload)
	}
	n.ends[p.Rank].asked.Add(-1)
	n.settle(id, nil, err)
}

// holds reports whether active messages wait for a connection.
func (n *NIC) holds() bool { return n.am != nil && n.am.Holds() }

// route tells active messages how a rank can be reached now, and has a connection made where there is none. A rank that lives and cannot be reached gets no request, whose
// caller is told; but it waits for a reply for as long as this rank is there, so that is tried again.
func (n *NIC) route(rank int, reply bool) (transport.EP, am.Route) {
	e := n.ends[rank]
	switch {
	case n.peers.Check(rank) != nil || e.refused.Load() && !reply:
		return transport.EP{}, am.Gone
	case e.refused.Load():
		n.wantSoon(rank)
		return transport.EP{}, am.Waiting
	case e.state.Load() != epUp:
		n.want(rank)
		return transport.EP{}, am.Waiting
	}
	ep := e.now()
	if e.failed.Load() == pack(ep) {
		return ep, am.Waiting
	}
	return ep, am.Open
}
