package verbs

import (
	"fmt"

	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
)

// watchDevice turns the device's asynchronous events into ends of pairs, completions and errors of Poll.
func (d *domain) watchDevice() {
	for {
		var e ibv.Event
		err := d.sleep(d.async, func() (ok bool, err error) {
			e, ok, err = ibv.TakeAsync(&d.nic)
			return ok, err
		})
		if err != nil {
			if !d.closed.Load() {
				d.fail(fmt.Errorf("verbs: watch %s: %w", d.port.name(), err))
			}
			return
		}
		d.happened(e)
		ibv.AckAsync(e) // whose handle has been nobody else's until now
	}
}

func (d *domain) happened(e ibv.Event) {
	switch e.Type {
	case ibv.EventQPFatal, ibv.EventQPReqErr, ibv.EventQPAccessErr:
		if p := d.table.byHandle(e.Object); p != nil {
			p.end(faultDevice, &StatusError{
				Op: "connection", Peer: p.peer.rank, Status: ibv.EventText(e.Type), Code: e.Type, Cause: faultDevice.words(p.peer.rank),
			})
		}
	case ibv.EventPortErr:
		if e.Object&0xff == uint64(d.port.number) {
			d.setPort(&StatusError{
				Op: "port " + d.port.name(), Peer: -1, Status: ibv.EventText(e.Type), Code: e.Type,
				Cause: "the interface was taken down, or the cable or the switch has failed",
			})
			d.tell(transport.Completion{Kind: transport.OpPortDown, Status: transport.StatusFlushed})
		}
	case ibv.EventPortActive:
		if e.Object&0xff == uint64(d.port.number) {
			d.setPort(nil)
		}
	case ibv.EventCQErr, ibv.EventDevFatal, ibv.EventSRQErr:
		d.fail(&StatusError{
			Op: "device " + d.port.name(), Peer: -1, Status: ibv.EventText(e.Type), Code: e.Type,
			Cause: "the device cannot be used any more by this process; look at the kernel's log",
		})
	}
}

// linked asks the device whether its port has a link. It is for the way of an error: it calls the system. The caller keeps the device from being
// closed: he polls, or Close waits for him. Others ask cut.
func (d *domain) linked() bool {
	s, err := ibv.QueryPort(d.nic.Context, d.port.number)
	return err != nil || s.State == ibv.PortActive
}

// setPort remembers what is wrong with the port; nil: nothing.
func (d *domain) setPort(why *StatusError) {
	d.news.mu.Lock()
	defer d.news.mu.Unlock()
	d.news.port = why
}

// Explain says what is behind a completion that is not StatusOK, as a *StatusError; nil where there is nothing to say.
// It knows the newest incarnation of each endpoint.
func (d *domain) Explain(c transport.Completion) error {
	switch {
	case c.Kind == transport.OpPortDown:
		d.news.mu.Lock()
		defer d.news.mu.Unlock()
		if d.news.port != nil {
			return d.news.port
		}
		return nil
	case c.Status == transport.StatusOK || c.EP.Index >= uint32(len(d.peers)):
		return nil
	}
	peer := &d.peers[c.EP.Index]
	p := peer.explained(c.EP)
	if p == nil {
		return nil
	}
	why := *p.why
	if p.verdict.Load() == verdictGone {
		why.Err = transport.ErrPeerGone
		if p.again != nil {
			why.Cause += "; connecting again: " + p.again.Error()
		}
		if p.fault == faultRefused {
			why.Cause = fmt.Sprintf("rank %d has ended, and its registrations with it", peer.rank)
		}
	}
	if c.Status == transport.StatusFlushed || c.Status == transport.StatusInDoubt {
		why = StatusError{
			Op: kindName(c.Kind), Peer: peer.rank, Status: "flushed", Cause: p.why.Error(), Err: why.Err,
		}
		if c.Status == transport.StatusInDoubt {
			why.Status = "in doubt, it may have been done"
		}
	}
	return &why
}

// explained returns the pair of an incarnation, if it is the newest or the one before and has ended.
func (p *peer) explained(ep transport.EP) *pair {
	for _, q := range []*pair{p.cur.Load(), p.last.Load()} {
		if q != nil && q.ep == ep && q.state.Load() == pairEnded {
			return q
		}
	}
	return nil
}
