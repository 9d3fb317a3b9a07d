package replay

import (
	"gopgas/firehose"
	"gopgas/internal/predict"
	"gopgas/internal/trace"
)

// HoseCounts are what became of transfers that need buckets, beside what their Holders count.
type HoseCounts struct {
	Carried   uint64        `json:"carried"`    // small puts that travelled in their own moves
	ByMessage uint64        `json:"by_message"` // pieces whose buckets were refused: the owner's processor copied
	Waited    predict.Nanos `json:"waited"`     // nanoseconds by which moves made calls longer
}

// HoseResult is what firehose did: sums over ranks, by the library's own accounting.
type HoseResult struct {
	Unit    int64 `json:"unit_bytes"`
	Share   int64 `json:"share_units"`   // F: of each other rank
	Victims int64 `json:"victims_units"` // V
	Pinned  int64 `json:"pinned_bytes"`  // M
	Limit   int64 `json:"limit_bytes"`   // of all that a rank has registered

	Hits         uint64 `json:"hits"`    // pieces of transfers that needed no message
	Joins        uint64 `json:"joins"`   // that waited for others' moves
	Misses       uint64 `json:"misses"`  // that took a move
	Blocked      uint64 `json:"blocked"` // of these, that waited for firehoses in use
	BucketHits   uint64 `json:"bucket_hits"`
	BucketMisses uint64 `json:"bucket_misses"`
	Moves        uint64 `json:"moves"`   // firehoses taken off a bucket for another
	Refused      uint64 `json:"refused"` // moves that the owner did not grant
	Orders       uint64 `json:"orders"`  // changes of a range's bucket size

	// Of helpers, under the policies that have them.
	Ahead    uint64 `json:"ahead"`    // moves made before a use that was predicted
	Foreseen uint64 `json:"foreseen"` // uses that would have missed without
	Late     uint64 `json:"late"`     // uses that came before the answer
	Wasted   uint64 `json:"wasted"`   // buckets given up before any use
	Told     uint64 `json:"told"`     // uses of buckets that helpers were told of
	Untold   uint64 `json:"untold"`   // and not, since their call sites had gained nothing

	Registered   uint64 `json:"registered"`
	Deregistered uint64 `json:"deregistered"`
	Resurrected  uint64 `json:"resurrected"` // buckets asked for that were victims
	Shared       uint64 `json:"shared"`      // that another rank held
	HoseCounts

	// The same replay with the memory of other nodes registered beforehand, out of nobody's budget.
	SlowestWithout predict.Nanos `json:"slowest_critical_without"`
	SecondsWithout float64       `json:"seconds_without"`
}

func hoseResult(b firehose.Budget, ranks []*rank) *HoseResult {
	h := &HoseResult{Unit: b.Unit(), Share: b.Share, Victims: b.Victims, Pinned: b.Peers}
	for _, r := range ranks {
		o, t, c := r.hose.holder.Stats(), r.hose.lender.server.Stats(), r.hose.counts
		h.Hits, h.Joins, h.Misses, h.Blocked = h.Hits+o.Hits, h.Joins+o.Joins, h.Misses+o.Misses, h.Blocked+o.Blocked
		h.BucketHits, h.BucketMisses = h.BucketHits+o.BucketHits, h.BucketMisses+o.BucketMisses
		h.Moves, h.Refused, h.Orders = h.Moves+o.Moves, h.Refused+o.Refusals, h.Orders+o.Orders
		h.Ahead, h.Foreseen, h.Late, h.Wasted = h.Ahead+o.Ahead, h.Foreseen+o.Foreseen, h.Late+o.Late, h.Wasted+o.Wasted
		s := r.hose.ahead.table.Stats()
		h.Told, h.Untold = h.Told+s.Told, h.Untold+s.Untold
		h.Registered, h.Deregistered = h.Registered+t.Registered, h.Deregistered+t.Deregistered
		h.Resurrected, h.Shared = h.Resurrected+t.Resurrected, h.Shared+t.Shared
		h.Carried, h.ByMessage, h.Waited = h.Carried+c.Carried, h.ByMessage+c.ByMessage, h.Waited+c.Waited
	}
	return h
}

// compare replays the same without buckets, each rank's own transfers having as much as with them.
func (h *HoseResult) compare(files []*trace.File, c Config, a account) error {
	h.Limit = a.limit
	c.Hose, c.Limit, c.Series = nil, a.limit-a.promised, 0
	if c.Limit == 0 { // nothing is left for own transfers, and no limit would be something else
		c.Limit = 1
	}
	without, err := Run(files, c)
	if err != nil {
		return err
	}
	h.SlowestWithout, h.SecondsWithout = without.Slowest, without.Seconds
	return nil
}
