package prices

import (
	"fmt"
	"math"
	"strings"

	"gopgas/internal/selector"
)

// Estimate is what a transfer would cost its caller by one protocol.
type Estimate struct {
	Protocol selector.Protocol
	Seconds  float64
	Chosen   bool // it is the cheapest of those whose memory is as registered as the caller's
}

// Estimates returns what each protocol that can carry out the transfer q would cost: direct as if q's memory were registered, the
// others as if it were not. It takes no account of what was learned.
func (p *Prices) Estimates(q selector.Query) (all []Estimate) {
	for k := selector.Inline; k < selector.Protocols; k++ {
		as := q
		as.Covered = k == selector.Direct
		if c := p.Selector.Cost(k, as); !math.IsInf(c, 1) {
			all = append(all, Estimate{k, c, selector.Select(as, p.Selector) == k})
		}
	}
	return all
}

// many is as many uses of a registration as a query can tell of.
const many = 255

// Row is a case of transfers and which sizes of it travel how: "inline to 128 B, bounce to 64 KiB, superpipe".
type Row struct{ Case, Sizes string }

const (
	page      = 4096
	tellFirst = 100e-9 // seconds of a page's first use that Rows tell
)

// Rows returns what is chosen for transfers to memory that the target has registered, and what memory costs that is new to the NIC.
func (p *Prices) Rows() (rows []Row) {
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
		rows = append(rows, Row{c.name, spans(c.q, p.Selector)})
	}
	if each := p.Selector.Machine().First * page; each >= tellFirst {
		rows = append(rows, Row{"memory that is new to the NIC", fmt.Sprintf("%.1f us more for each 4 KiB that go direct", each*1e6)})
	}
	return rows
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
