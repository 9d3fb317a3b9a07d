package proto

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gopgas/eager"
	"gopgas/internal/selector"
	"gopgas/transport"
)

// Estimate is what a transfer would cost its caller by one protocol.
type Estimate struct {
	Protocol selector.Protocol
	Seconds  float64
	Chosen   bool // it is the cheapest of those whose memory is as registered as the caller's
}

// Estimates measures the costs of this machine and NIC if that has not happened, and returns what each protocol that can
// carry out the transfer q would cost: direct as if q's memory were registered, the others as if it were not. It may take
// forty milliseconds.
func (e *Engine) Estimates(q selector.Query) ([]Estimate, error) {
	n := e.nic()
	if n == nil {
		return nil, fmt.Errorf("estimate transfers: no NIC is in use: %w", transport.ErrUnsupported)
	}
	n.measure(nil)
	p := n.prices()
	if p.why != nil {
		return nil, p.why
	}
	var all []Estimate
	for k := selector.Inline; k < selector.Protocols; k++ {
		as := q
		as.Covered = k == selector.Direct
		if c := p.selector.Cost(k, as); !math.IsInf(c, 1) {
			all = append(all, Estimate{k, c, selector.Select(as, p.selector) == k})
		}
	}
	return all, nil
}

// Measured reports whether the costs have been measured, or cannot be: some large transfers to a rank have them measured with
// that one.
func (e *Engine) Measured() bool {
	n := e.nic()
	return n == nil || n.e.Sched.Virtual() || n.prices().measured || n.prices().why != nil
}

// SmallCosts returns what small puts, or gets, cost on this machine and NIC, as it was measured; nil: nothing has been.
func (e *Engine) SmallCosts(get bool) eager.Costs {
	n := e.nic()
	switch {
	case n == nil:
		return nil
	case get:
		return n.prices().small[1]
	default:
		return n.prices().small[0]
	}
}

// Force makes this rank's puts and gets of memory over the NIC travel by p from now on, wherever p can carry them; None
// leaves them to the settings again. It is for who compares protocols.
func (e *Engine) Force(p selector.Protocol) {
	if n := e.nic(); n != nil {
		n.forced.Store(uint32(p))
	}
}

// forcedChoice is what Force makes of a transfer; ok is false where it makes nothing.
func (n *nic) forcedChoice() (p selector.Protocol, ok bool) {
	p = selector.Protocol(n.forced.Load())
	switch p {
	case selector.None:
		return p, false
	case selector.Inline, selector.Bounce:
		return selector.Bounce, true
	case selector.Direct, selector.Register:
		return selector.Direct, true
	case selector.Pipe, selector.Hybrid:
		return p, true
	default:
		return p, false
	}
}

// many is as many uses of a registration as a query can tell of.
const many = 255

// Row is a case of transfers and which sizes of it travel how: "inline to 128 B, bounce to 64 KiB, superpipe".
type Row struct{ Case, Sizes string }

// Protocols opens the NIC of an engine, measures it if it can be, and returns what is chosen for transfers to memory that
// the target has registered. measured is an error where nothing was measured: the rows are then those of published
// constants.
func (e *Engine) Protocols(ctx context.Context) (rows []Row, measured, err error) {
	if err := e.openNIC(ctx); err != nil {
		return nil, nil, err
	}
	n := e.nic()
	if n == nil {
		return nil, nil, fmt.Errorf("choose protocols: there is no NIC: %w", transport.ErrUnsupported)
	}
	n.learn(e.Rank, n.d.Address())
	n.measure(nil)
	p := n.prices()
	for _, c := range []struct {
		name string
		q    selector.Query
	}{
		{"put, not waited for", selector.Query{Uses: 1}},
		{"put and flush, first use", selector.Query{Waited: true, Uses: 1}},
		{"put and flush, often used", selector.Query{Waited: true, Uses: many}},
		{"put and flush, registered", selector.Query{Waited: true, Covered: true}},
		{"get, first use", selector.Query{Get: true, Waited: true, Uses: 1}},
		{"get, often used", selector.Query{Get: true, Waited: true, Uses: many}},
		{"get, registered", selector.Query{Get: true, Waited: true, Covered: true}},
	} {
		rows = append(rows, Row{c.name, spans(c.q, p.selector)})
	}
	return rows, p.why, nil
}

// longestTold is the size up to which spans looks.
const longestTold = 1 << 30

// spans tells which sizes of a query travel how.
func spans(q selector.Query, s *selector.Selector) string {
	var parts []string
	last := selector.None
	for q.Bytes = 1; q.Bytes <= longestTold; q.Bytes = next(q.Bytes) {
		p := selector.Select(q, s)
		if p == last {
			continue
		}
		if last != selector.None {
			parts = append(parts, fmt.Sprintf("%v below %s", last, sizeText(edge(q, s, last))))
		}
		last = p
	}
	return strings.Join(append(parts, last.String()), ", ")
}

// next is the next larger size that is looked at, four to a factor of two.
func next(bytes int) int { return max(bytes+1, bytes+bytes/8) }

// edge is the least size up to that of q from which on the choice is no longer last.
func edge(q selector.Query, s *selector.Selector, last selector.Protocol) int {
	low, high := q.Bytes*7/9, q.Bytes
	for low < high {
		q.Bytes = (low + high) / 2
		if selector.Select(q, s) == last {
			low = q.Bytes + 1
		} else {
			high = q.Bytes
		}
	}
	return high
}

// sizeText prints a size with a binary unit where nothing is lost by it.
func sizeText(n int) string {
	for _, u := range []struct {
		bytes int
		name  string
	}{{1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d %s", n/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}
