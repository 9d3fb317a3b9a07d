package replay

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"gopgas/firehose"
	"gopgas/internal/foresight"
	"gopgas/internal/predict"
	"gopgas/internal/trace"
)

// Hose says that memory of other nodes is registered in buckets, on demand, as the library does where a NIC's registrations
// are limited. Zero fields are what the library's own agreement makes of Config.Limit.
type Hose struct {
	Pinned  int64 // M: bytes that a rank keeps registered for its peers, together
	Victims int64 // V: bytes for its own transfers and for buckets that nobody holds
	Bucket  int64 // bytes; 0: each range has the size that suits how it is used
}

// ErrNoTargets says that a trace does not tell where in their target's memory transfers lie.
var ErrNoTargets = errors.New("the trace does not say where in their targets' memory transfers lie: record it again")

// The library's smallest bucket, and the bytes of a message that has a move.
const (
	leastUnit   = 32 << 10
	movePayload = 4032
)

// budgetOf divides a rank's registrations, and returns what they may be together.
func (c *Config) budgetOf(ranks int) (firehose.Budget, int64, error) {
	h := *c.Hose
	limit := c.Limit
	if limit == 0 { // the library's proportion
		switch {
		case h.Pinned == 0 && h.Victims == 0:
			return firehose.Budget{}, 0, errors.New("replay: buckets need a limit of what a rank may register, or of what it keeps for its peers")
		case h.Victims == 0:
			h.Victims = (h.Pinned + 2) / 3
		case h.Pinned == 0:
			h.Pinned = 3 * h.Victims
		}
		limit = h.Pinned + h.Victims
	}
	unit := int64(leastUnit)
	if n := h.Bucket; n != 0 {
		if n < pageBytes || n&(n-1) != 0 {
			return firehose.Budget{}, 0, fmt.Errorf("replay: buckets of %d bytes: want a power of two from %d on", n, pageBytes)
		}
		unit = min(unit, n)
	}
	b, err := firehose.Split(firehose.Limits{Ranks: ranks, Pinnable: limit, Peers: h.Pinned, Own: h.Victims, Unit: unit, Page: pageBytes})
	if err != nil {
		return b, 0, fmt.Errorf("replay: %w", err)
	}
	return b, limit, nil
}

// exposure is a range of an owner's memory: of several with one place, in the order in which a rank has seen them.
type exposure struct {
	start, bytes uint64
	turn         int
}

// reach is what one rank's file calls a range.
type reach struct {
	owner int32
	part  trace.Range
}

// atlas knows the ranges of a trace. Files number exposures by themselves, so what two ranks mean by a number may differ:
// what lies at the same place of the same owner, and is the n-th there that a rank has seen, is the same.
type atlas struct {
	of    []map[reach]firehose.Range // by rank
	owned [][]firehose.Range         // by owner
}

func mapRanges(files []*trace.File) (*atlas, error) {
	a := &atlas{of: make([]map[reach]firehose.Range, len(files)), owned: make([][]firehose.Range, len(files))}
	known := make([]map[exposure]firehose.Range, len(files))
	any := false
	for _, f := range files {
		seen, turns := map[reach]firehose.Range{}, map[reach]int{}
		for i := range f.Events {
			e := &f.Events[i]
			if e.To.ID == 0 || e.Peer < 0 || int(e.Peer) >= len(files) {
				continue
			}
			key := reach{e.Peer, e.To}
			if _, ok := seen[key]; ok {
				continue
			}
			place := reach{e.Peer, trace.Range{Start: e.To.Start, Bytes: e.To.Bytes}}
			x := exposure{e.To.Start, e.To.Bytes, turns[place]}
			turns[place]++
			r, ok := known[e.Peer][x]
			if !ok {
				r = firehose.Range{ID: uint32(len(a.owned[e.Peer]) + 1), Start: x.start % pageBytes, Bytes: x.bytes} // as hose has it
				if known[e.Peer] == nil {
					known[e.Peer] = map[exposure]firehose.Range{}
				}
				known[e.Peer][x] = r
				a.owned[e.Peer] = append(a.owned[e.Peer], r)
			}
			seen[key] = r
			any = true
		}
		a.of[f.Rank] = seen
	}
	if !any {
		return nil, ErrNoTargets
	}
	return a, nil
}

// hoseEnd is a rank's end of all firehoses: what it holds, and what it serves.
type hoseEnd struct {
	order   int // of all buckets; -1: each range has its own
	ranges  map[reach]firehose.Range
	views   map[reach]*firehose.View
	holder  *firehose.Holder
	ahead   outlook
	half    uint64 // of the share, bytes: how much a transfer asks for at once
	free    []*firehose.Request
	flow    *flow // the call that waits; nil: none
	lender  *lender
	busy    predict.Nanos // until then it serves a move
	inbox   []message
	zeros   []byte // what small puts carry
	counts  HoseCounts
	now     predict.Nanos
	post    func(to int, m message)
	rank    int
	latency predict.Nanos
}

// mostCarried is the largest put that a move may carry.
const mostCarried = 3 << 10

// join gives a rank its end.
func (r *rank) join(b firehose.Budget, a *atlas, post func(to int, m message)) error {
	h := &hoseEnd{
		order: -1, ranges: a.of[r.id], views: map[reach]*firehose.View{}, rank: r.id, post: post, busy: math.MinInt64, latency: r.cfg.Costs.Latency,
		half: uint64(max(1, b.Share/2) << b.Shift), zeros: make([]byte, mostCarried),
	}
	if n := r.cfg.Hose.Bucket; n > 0 {
		h.order = bits.Len64(uint64(n)) - 1 - int(b.Shift)
		if h.order < 0 || h.order > int(b.MaxOrder()) {
			return fmt.Errorf("replay: buckets of %d bytes: want a power of two from %d to %d: %v", n, b.Unit(), b.Unit()<<b.MaxOrder(), b)
		}
	}
	c := r.cfg.Costs
	h.ahead = outlook{table: foresight.New(b.Ranks), ctx: predict.NewStream(r.cfg.Predictor.Window), due: map[predict.Region]predict.Nanos{}, costs: firehose.Costs{
		RoundTrip: 2 * float64(c.Latency), Register: c.Register.Fixed + c.Deregister.Fixed,
		RegisterByte: (c.Register.PerPage + c.Deregister.PerPage) / pageBytes,
	}}
	var err error
	h.holder, err = firehose.NewHolder(firehose.HolderConfig{Budget: b, Payload: movePayload, Costs: h.ahead.costs})
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	h.lender = &lender{c: r.cache, shift: b.Shift}
	h.lender.server = firehose.NewServer(b, h.lender, func() uint64 { return r.cache.uses })
	for _, owned := range a.owned[r.id] {
		if err := h.lender.server.Expose(owned); err != nil {
			return fmt.Errorf("replay: rank %d: %w", r.id, err)
		}
	}
	r.cache.lender = h.lender
	r.cache.account.promised = b.Share * int64(b.Ranks-1) << b.Shift
	r.hose = h
	return nil
}

// view returns the memory that an event reaches, nil where nothing is known of it.
func (h *hoseEnd) view(e *trace.Event) (*firehose.View, error) {
	if h == nil || e.Bytes == 0 {
		return nil, nil
	}
	key := reach{e.Peer, e.To}
	r, ok := h.ranges[key]
	if !ok {
		return nil, nil
	}
	v := h.views[key]
	if v != nil {
		return v, nil
	}
	v, err := h.holder.View(int(e.Peer), r)
	if err == nil && h.order >= 0 {
		err = h.holder.Fix(v, uint8(h.order))
	}
	h.views[key] = v
	return v, err
}
