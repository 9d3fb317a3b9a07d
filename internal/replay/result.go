package replay

import "gopgas/internal/predict"

// Counts are sums over ranks.
type Counts struct {
	Calls    uint64        `json:"calls"`    // that need registered memory or a copy
	Small    uint64        `json:"small"`    // below the threshold
	Local    uint64        `json:"local"`    // with a peer on the same node
	Hits     uint64        `json:"hits"`     // registered already
	Late     uint64        `json:"late"`     // had to wait for a registration under way
	First    uint64        `json:"first"`    // misses: never registered before
	Again    uint64        `json:"again"`    // misses: registered before, given back since
	Copies   uint64        `json:"copies"`   // through a pre-registered buffer
	Fallback uint64        `json:"fallback"` // of those, because there was no room to register
	Critical predict.Nanos `json:"critical"` // nanoseconds that calls took for registration and copies
}

func (c *Counts) add(o Counts) {
	c.Calls, c.Small, c.Local = c.Calls+o.Calls, c.Small+o.Small, c.Local+o.Local
	c.Hits, c.Late, c.First, c.Again = c.Hits+o.Hits, c.Late+o.Late, c.First+o.First, c.Again+o.Again
	c.Copies, c.Fallback, c.Critical = c.Copies+o.Copies, c.Fallback+o.Fallback, c.Critical+o.Critical
}

// Result is what a replay shows.
type Result struct {
	Policy          string        `json:"policy"`
	Seconds         float64       `json:"seconds"`       // until the last rank's last transfer was done
	Peak            int64         `json:"peak_bytes"`    // of the node with the highest
	Average         float64       `json:"average_bytes"` // over time, mean of all nodes
	Nodes           []NodeResult  `json:"nodes"`
	Registrations   uint64        `json:"registrations"`
	Deregistrations uint64        `json:"deregistrations"`
	Evictions       uint64        `json:"evictions"`
	Helpers         int           `json:"helpers"`          // with a seat at the end
	Slowest         predict.Nanos `json:"slowest_critical"` // critical-path time of the rank that has most
	Counts
	Prediction predict.Stats `json:"prediction"`
	Hose       *HoseResult   `json:"firehose,omitempty"`
}

// NodeResult is one node's registered bytes.
type NodeResult struct {
	Ranks   []int   `json:"ranks"`
	Peak    int64   `json:"peak_bytes"`
	Average float64 `json:"average_bytes"`
	Series  []int64 `json:"series,omitempty"`

	// Of these, what is registered for other nodes.
	LentPeak    int64   `json:"lent_peak_bytes,omitempty"`
	LentAverage float64 `json:"lent_average_bytes,omitempty"`
	LentSeries  []int64 `json:"lent_series,omitempty"`
}

func (res *Result) gather(nodes []*node, parts int) {
	var end predict.Nanos
	for _, n := range nodes {
		for _, r := range n.ranks {
			end = max(end, r.end)
			res.Counts.add(r.counts)
			res.Slowest = max(res.Slowest, r.counts.Critical)
			res.Registrations += r.cache.registrations
			res.Deregistrations += r.cache.deregistrations
			res.Evictions += r.cache.evictions
			if r.cfg.Policy.helped() {
				if r.helped {
					res.Helpers++
				}
				addStats(&res.Prediction, r.mind.Stats())
			}
		}
	}
	res.Seconds = float64(end) / 1e9
	for _, n := range nodes {
		m := n.meter.read(end, parts)
		out := NodeResult{Peak: m.peak, Average: m.average, Series: m.series}
		if lent := n.lent.read(end, parts); lent.peak > 0 {
			out.LentPeak, out.LentAverage, out.LentSeries = lent.peak, lent.average, lent.series
		}
		for _, r := range n.ranks {
			out.Ranks = append(out.Ranks, r.id)
		}
		res.Nodes = append(res.Nodes, out)
		res.Peak = max(res.Peak, m.peak)
		res.Average += m.average / float64(len(nodes))
	}
}

func addStats(a *predict.Stats, b predict.Stats) {
	a.Uses, a.Lost, a.Predicted = a.Uses+b.Uses, a.Lost+b.Lost, a.Predicted+b.Predicted
	a.Within5, a.WithinHalf = a.Within5+b.Within5, a.WithinHalf+b.WithinHalf
	a.GaveBack, a.Kept, a.Registered = a.GaveBack+b.GaveBack, a.Kept+b.Kept, a.Registered+b.Registered
	a.Found, a.Refused, a.Dropped = a.Found+b.Found, a.Refused+b.Refused, a.Dropped+b.Dropped
	a.Mispredicted, a.Cancelled = a.Mispredicted+b.Mispredicted, a.Cancelled+b.Cancelled
}
