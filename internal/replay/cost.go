package replay

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gopgas/internal/cost"
	"gopgas/internal/predict"
)

// Costs is a machine's model in nanoseconds, pages of 4096 bytes and bytes per nanosecond.
type Costs struct {
	Register, Deregister predict.Line
	Copy                 float64       // bytes per nanosecond of a copy through a pre-registered buffer
	Hash                 predict.Nanos // of a use
	Compare              float64       // of one item
	Slice, Swap          predict.Nanos // of the kernel's scheduler
	Poll                 predict.Nanos // X: how late the helper hears of a use
	Latency              predict.Nanos // of a short message, one way
	Net                  float64       // bytes per nanosecond of transfers whose length a trace does not tell
}

// MostCost is the longest that anything may take: of each page, so that times of transfers do not overflow. mostRate is the highest rate, and one over it the least.
const (
	MostCost = 10 * time.Second
	mostRate = 1e6
)

// free is a machine on which nothing costs anything but the helper's thoughts, so that what is seen is prediction alone.
const free = "register=0 deregister=0 copy=1000 hash=200ns compare=0 slice=0 swap=0 poll=0 latency=0 net=1000"

// assumed are the costs that no model of a NIC contains.
const assumed = "hash=200ns slice=4ms swap=3us poll=0"

// CostNames lists the models that ParseCosts knows: those of package cost, which has their sources, and free.
func CostNames() []string { return append(cost.Names(), "free") }

// ParseCosts reads the name of a model, and words that change it, such as "register=68us+200ns": a fixed part and one for
// each page, then if need be a third, the largest residual. copy and net are in GB/s. The scheduler's costs and t_hash are
// assumed unless they are among the words.
func ParseCosts(text string) (Costs, error) {
	words := strings.Fields(strings.ReplaceAll(text, ",", " "))
	if len(words) == 0 {
		return Costs{}, fmt.Errorf("cost model: want one of %q, and words such as register=68us+200ns copy=5.2", CostNames())
	}
	var c Costs
	name, more := words[0], words[1:]
	words = strings.Fields(assumed)
	if name == "free" {
		words = strings.Fields(free)
	} else {
		m, err := cost.Named(name)
		if err != nil {
			return Costs{}, fmt.Errorf("cost model %q: want one of %q, and words such as register=68us+200ns copy=5.2", text, CostNames())
		}
		c = fromModel(m)
	}
	for _, w := range append(words, more...) {
		if err := c.set(w); err != nil {
			return Costs{}, fmt.Errorf("cost model %q: %w", text, err)
		}
	}
	return c, nil
}

// fromModel takes over a model. Rates are those of large transfers, the latency is a short one's from post to completion.
func fromModel(m cost.Model) Costs {
	const short, large = 64, 4 << 20
	line := func(l cost.Line) predict.Line { return predict.Line{PerPage: l.A, Fixed: l.B, Residual: l.Residual} }
	return Costs{
		Register: line(m.Register), Deregister: line(m.Deregister), Compare: m.Compare,
		Latency: m.Transfer.At(short).Nanoseconds(),
		Copy:    m.Copy.Rate(large) / 1e9, Net: m.Transfer.Rate(large) / 1e9,
	}
}

func (c *Costs) set(word string) error {
	name, value, _ := strings.Cut(word, "=")
	if rate := map[string]*float64{"copy": &c.Copy, "net": &c.Net}[name]; rate != nil {
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v >= 1/mostRate && v <= mostRate) { // nor what is no number
			return fmt.Errorf("%s=%s: want GB/s, from %g to %g", name, value, 1/mostRate, mostRate)
		}
		*rate = v
		return nil
	}
	var parts []float64
	for p := range strings.SplitSeq(value, "+") {
		d, err := nanos(p)
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
		parts = append(parts, d)
	}
	one := predict.Nanos(parts[0] + 0.5)
	scalars := map[string]*predict.Nanos{"hash": &c.Hash, "slice": &c.Slice, "swap": &c.Swap, "poll": &c.Poll, "latency": &c.Latency}
	lines := map[string]*predict.Line{"register": &c.Register, "deregister": &c.Deregister}
	switch {
	case lines[name] != nil && len(parts) <= 3:
		parts = append(parts, 0, 0)
		*lines[name] = predict.Line{Fixed: parts[0], PerPage: parts[1], Residual: parts[2]}
	case scalars[name] != nil && len(parts) == 1:
		*scalars[name] = one
	case name == "compare" && len(parts) == 1:
		c.Compare = parts[0]
	default:
		return fmt.Errorf("%s: no such cost; there are register, deregister (fixed+page+residual), copy, net, hash, compare, slice, swap, poll, latency", word)
	}
	return nil
}

// nanos reads a duration, which may be a plain number of nanoseconds with a fraction.
func nanos(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSuffix(s, "ns"), 64)
	if err != nil {
		var d time.Duration
		d, err = time.ParseDuration(s)
		v = float64(d)
	}
	switch {
	case err != nil, !(v >= 0):
		return 0, fmt.Errorf("%q is no duration", s)
	case v > float64(MostCost):
		return 0, fmt.Errorf("%q: want at most %v", s, MostCost)
	}
	return v, nil
}

// forHelper is what the helper's estimates are made of.
func (c Costs) forHelper() predict.Costs {
	return predict.Costs{Register: c.Register, Deregister: c.Deregister, Hash: c.Hash, Compare: c.Compare, Poll: c.Poll}
}

// transfer returns how long a transfer takes of which the trace tells 0.
func (c Costs) transfer(bytes uint64) predict.Nanos { return predict.Nanos(float64(bytes)/c.Net + 0.5) }

func (c Costs) copyTime(bytes uint64) predict.Nanos {
	return predict.Nanos(float64(bytes)/c.Copy + 0.5)
}
