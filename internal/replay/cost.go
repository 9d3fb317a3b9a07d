package replay

import (
	"fmt"
	"strconv"
	"strings"
	"time"

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
	Net                  float64       // bytes per nanosecond of transfers whose length a trace does not tell
}

// Presets are named cost models, in the words of ParseCosts. Only the registration costs of the first are published, by
// Denis (Euro-Par 2011) for his cluster; everything else in it is assumed.
func Presets() map[string]string {
	return map[string]string{
		"published": "register=68us+200ns deregister=34us+50ns copy=5.2 hash=200ns compare=5ns slice=4ms swap=3us poll=0 net=2",
		"free":      "register=0 deregister=0 copy=1000 hash=200ns compare=0 slice=0 swap=0 poll=0 net=1000",
	}
}

// ParseCosts reads a preset's name, or words such as "register=68us+200ns": a fixed part and one for each page, then if
// need be a third, the largest residual. copy and net are in GB/s. A preset may be followed by words that change it.
func ParseCosts(text string) (Costs, error) {
	var c Costs
	words := strings.Fields(strings.ReplaceAll(text, ",", " "))
	if len(words) > 0 {
		if preset, ok := Presets()[words[0]]; ok {
			words = append(strings.Fields(preset), words[1:]...)
		} else {
			words = append(strings.Fields(Presets()["published"]), words...)
		}
	}
	for _, w := range words {
		if err := c.set(w); err != nil {
			return Costs{}, fmt.Errorf("cost model %q: %w", text, err)
		}
	}
	if c.Copy <= 0 {
		return Costs{}, fmt.Errorf("cost model %q: want a preset (published, free) and words such as register=68us+200ns copy=5.2", text)
	}
	return c, nil
}

func (c *Costs) set(word string) error {
	name, value, _ := strings.Cut(word, "=")
	if rate := map[string]*float64{"copy": &c.Copy, "net": &c.Net}[name]; rate != nil {
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || v <= 0 {
			return fmt.Errorf("%s=%s: want GB/s", name, value)
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
	scalars := map[string]*predict.Nanos{"hash": &c.Hash, "slice": &c.Slice, "swap": &c.Swap, "poll": &c.Poll}
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
		return fmt.Errorf("%s: no such cost; there are register, deregister (fixed+page+residual), copy, net, hash, compare, slice, swap, poll", word)
	}
	return nil
}

// nanos reads a duration, which may be a plain number of nanoseconds with a fraction.
func nanos(s string) (float64, error) {
	if v, err := strconv.ParseFloat(strings.TrimSuffix(s, "ns"), 64); err == nil && v >= 0 {
		return v, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no duration", s)
	}
	return float64(d), nil
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
