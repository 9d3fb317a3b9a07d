package verbs

import (
	"fmt"
	"sync"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
)

// pollSide is what the poller uses.
type pollSide struct {
	mu    sync.Mutex
	done  [ibv.Batch]ibv.Done
	fresh [2]int                 // from which to which of done Post has taken them, not yet digested; they are older than what the device has
	ready []transport.Completion // harvested and not yet polled
	from  int                    // of ready
}

func (s *pollSide) anyFresh() bool { return s.fresh[0] < s.fresh[1] }

// takeFresh is what is to be digested next of what Post has taken, at most so many.
func (s *pollSide) takeFresh(most int) []ibv.Done {
	from := s.fresh[0]
	s.fresh[0] = min(s.fresh[1], from+most)
	return s.done[from:s.fresh[0]]
}

// news is what there is to report that did not come from the completion queue.
type news struct {
	mu     sync.Mutex
	events []transport.Completion // OpPeerDown, OpPortDown
	ripe   []*pair                // with ghosts to report
	err    error                  // the device is broken
	port   *StatusError           // what is wrong with the port
	count  atomic.Int32           // of all these
}

// Poll reports completions, up to 64 in one crossing, or in none if Post has taken some. It allocates nothing and never waits for the NIC.
func (d *domain) Poll(cq []transport.Completion) (n int, err error) {
	d.poll.mu.Lock()
	n, err = d.pollLocked(cq)
	d.poll.mu.Unlock()
	return n, err
}

func (d *domain) pollLocked(cq []transport.Completion) (n int, err error) {
	if d.closed.Load() {
		return 0, transport.ErrClosed
	}
	if d.poll.from < len(d.poll.ready) {
		n = copy(cq, d.poll.ready[d.poll.from:])
		if d.poll.from += n; d.poll.from == len(d.poll.ready) {
			d.poll.ready, d.poll.from = d.poll.ready[:0], 0
		}
	}
	if d.news.count.Load() != 0 {
		var k int
		k, err = d.takeNews(cq[n:])
		n += k
	}
	if err != nil {
		return n, err
	}
	for n < len(cq) && d.poll.anyFresh() {
		if k := d.digestLocked(d.poll.takeFresh(len(cq)-n), cq[n:]); k > 0 {
			return n + k, nil // there may be more: who has got something comes again
		}
	}
	return d.takeLocked(cq, n)
}

// takeLocked takes completions from the device, for the room behind the first n of cq.
func (d *domain) takeLocked(cq []transport.Completion, n int) (int, error) {
	for n < len(cq) {
		room := min(len(cq)-n, ibv.Batch)
		k, err := ibv.Poll(&d.nic, d.poll.done[:room])
		if err != nil {
			return n, fmt.Errorf("verbs: poll: %w", err)
		}
		if k > 0 {
			n += d.digestLocked(d.poll.done[:k], cq[n:])
		}
		if k < room {
			break
		}
	}
	return n, nil
}

// harvest takes what the completion queue holds, so that the device has room and pairs are seen to be drained; Poll
// reports it later.
func (d *domain) harvest() {
	d.poll.mu.Lock()
	defer d.poll.mu.Unlock()
	if !d.closed.Load() {
		d.harvestLocked()
	}
}

func (d *domain) harvestLocked() {
	var out [ibv.Batch]transport.Completion
	n := d.digestLocked(d.poll.takeFresh(len(out)), out[:])
	d.poll.ready = append(d.poll.ready, out[:n]...)
	for {
		k, err := ibv.Poll(&d.nic, d.poll.done[:])
		if err != nil {
			d.fail(fmt.Errorf("verbs: poll: %w", err))
			return
		}
		n = d.digestLocked(d.poll.done[:k], out[:])
		d.poll.ready = append(d.poll.ready, out[:n]...)
		if k < len(d.poll.done) {
			return
		}
	}
}

// digestLocked handles completions of the device and writes those to report to out, which has room for as many.
func (d *domain) digestLocked(done []ibv.Done, out []transport.Completion) (n int) {
	for i := range done {
		w := &done[i]
		if w.ID&recvBit != 0 {
			n += d.digestRecv(w, out[n:])
			continue
		}
		p := d.table.slots[w.ID&^drainBit>>32].Load()
		switch {
		case p == nil:
			// Of a pair that was destroyed undrained: there is nobody to report it to.
		case w.ID&drainBit != 0:
			if p.state.Load() == pairEnded && !p.failed {
				p.skipQuiet()
			}
			p.drained.Store(true)
			p.ripen()
		case p.failed:
			// Flushed by the failure at the head; reported when the pair is drained.
		case w.Status != ibv.StatusOK:
			p.head.Store(uint32(w.ID))
			p.failed, p.device, p.vendor = true, w.Status, w.Vendor
			p.fail()
		default:
			// The records up to this one are done, and the last is reported, if it was signalled.
			i := uint32(w.ID)
			if rec := p.at(i); rec.signaled {
				out[n] = transport.Completion{Cookie: rec.cookie, EP: rec.ep, Kind: rec.kind, Bytes: rec.bytes}
				n++
			}
			mem.Publish32(&p.head, i+1) // from here on the record is a poster's
			if p.peer.suspect.Load() {
				p.peer.suspect.Store(false)
			}
		}
	}
	return n
}

// skipQuiet takes the records from the ring that the NIC had, and was not asked to report: they have succeeded (W2). One that it was
// asked to report, and has not, it has forgotten altogether, and perhaps what is behind.
func (p *pair) skipQuiet() {
	i := p.head.Load()
	for i != p.posted && !p.at(i).asked {
		i++
	}
	p.head.Store(i)
}

// fail ends the pair for the failure of the record at its head.
func (p *pair) fail() {
	if p.device == ibv.StatusFlush {
		p.end(faultDevice, nil) // by now it has ended for another reason, unless the device has flushed by itself
		return
	}
	rec := p.at(p.head.Load())
	f, why := faultOf(p.device), cause(p.device, rec.kind, p.peer.rank)
	// Some devices take a port without a link, or a route that has gone with it, for a fault of the operation.
	routeless := p.device == ibv.StatusLocQPOp && p.d.hasKeys(rec.lkeys[:rec.pieces])
	if routeless || (f == faultLocal || f == faultSilent) && !p.d.linked() {
		f, why = faultPort, faultPort.words(p.peer.rank)
	}
	device := p.device
	if f == faultPort {
		p.device = ibv.StatusOK // the operation is not at fault, even if the peer has noticed first and ended the pair
	}
	p.end(f, &StatusError{
		Op: kindName(rec.kind), Peer: p.peer.rank, Status: ibv.StatusText(device), Code: device, Vendor: p.vendor, Cause: why,
	})
}

// digestRecv reports a message, or gives the buffer of one that failed back.
func (d *domain) digestRecv(w *ibv.Done, out []transport.Completion) int {
	slot := uint32(w.ID)
	if w.Status != ibv.StatusOK {
		cookie, posted := d.giveBack(slot, w.Status)
		if posted {
			return 0
		}
		out[0] = transport.Completion{Cookie: cookie, Kind: transport.OpRecv, Status: transport.StatusLocalAccess}
		return 1
	}
	c := transport.Completion{Cookie: d.recvs.received(slot), Kind: transport.OpRecv, Bytes: w.Bytes, Imm: w.Imm}
	if p := d.table.byNumber(w.QPNumber); p != nil {
		c.EP = p.ep
	}
	out[0] = c
	return 1
}

// ripen has the pair's ghosts reported, if the NIC has finished with them and the peer's fate is known.
func (p *pair) ripen() {
	if !p.drained.Load() || (p.verdict.Load() == verdictNone && p.qp.Handle != 0) || p.head.Load() == p.tail.Load() {
		return
	}
	n := &p.d.news
	n.mu.Lock()
	defer n.mu.Unlock()
	if !p.ripe {
		p.ripe = true
		n.ripe = append(n.ripe, p)
		n.count.Add(1)
		p.d.Wake()
	}
}

// addGhost appends the record that was written to the next place of a pair that has ended. Whoever makes the pair ripe may look at the ring
// at this moment: one of the two sees what the other has done, since the tail is stored in sequence here, and not by add.
func (p *pair) addGhost() {
	p.tail.Store(p.tail.Load() + 1)
	p.ripen()
}

// takeNews reports events and ghosts. The caller holds domain.poll.
func (d *domain) takeNews(cq []transport.Completion) (k int, err error) {
	n := &d.news
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		return 0, n.err
	}
	for len(n.events) > 0 && k < len(cq) {
		cq[k] = n.events[0]
		n.events = n.events[1:]
		n.count.Add(-1)
		k++
	}
	for len(n.ripe) > 0 && k < len(cq) {
		p := n.ripe[0]
		for k < len(cq) && p.head.Load() != p.tail.Load() {
			cq[k] = p.ghost()
			k++
		}
		if p.head.Load() == p.tail.Load() {
			p.ripe = false
			n.ripe = n.ripe[1:]
			n.count.Add(-1)
		}
	}
	return k, nil
}

// ghost takes the record at the head, which the NIC has not done.
func (p *pair) ghost() transport.Completion {
	i := p.head.Load()
	rec := *p.at(i)
	p.head.Store(i + 1)
	device := p.device
	first := p.failed
	if p.failed {
		p.failed, p.device = false, ibv.StatusOK
	}
	posted := p.qp.Handle != 0 && int32(p.posted-i) > 0
	s := ghostStatus(rec.kind, p.fault, first, posted, p.verdict.Load() == verdictGone, device)
	return transport.Completion{Cookie: rec.cookie, EP: rec.ep, Kind: rec.kind, Status: s}
}

// tell reports an event.
func (d *domain) tell(c transport.Completion) {
	d.news.mu.Lock()
	d.news.events = append(d.news.events, c)
	d.news.count.Add(1)
	d.news.mu.Unlock()
	d.Wake()
}

// fail makes every later Poll return err: the device cannot be used any more.
func (d *domain) fail(err error) {
	d.news.mu.Lock()
	if d.news.err == nil {
		d.news.err = err
		d.news.count.Add(1)
	}
	d.news.mu.Unlock()
	d.Wake()
}
