package prices

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"gopgas/eager"
	"gopgas/internal/cost"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
)

// sheet is what was measured as plain data, for others with the same NIC on the same machine. What was learned is not part of it.
type sheet struct {
	Model                 superpipe.Model
	First                 float64
	Post, Lookup, Handler float64
	Slotted, Piped        selector.Tuning
	Puts, Gets, Runs      [selector.Protocols]selector.More
	Small                 [3]eager.Costs
	Abroad                bool
}

var errUnmeasured = errors.New("prices: nothing has been measured")

// Sheet returns p, which was measured, in JSON. It allocates.
func (p *Prices) Sheet() ([]byte, error) {
	if !p.Measured {
		return nil, errUnmeasured
	}
	m := p.Selector.Machine()
	return json.Marshal(sheet{
		Model: m.Model, First: m.First, Post: m.Post, Lookup: m.Lookup, Handler: m.Handler, Slotted: m.Slotted, Piped: m.Piped,
		Puts: m.Puts, Gets: m.Gets, Runs: m.Runs, Small: p.Small, Abroad: p.Abroad,
	})
}

// FromSheet returns the prices that a sheet tells, of which nothing has been learned yet. Of m only what is known without measuring is looked at.
func FromSheet(m selector.Machine, written []byte) (*Prices, error) {
	var s sheet
	if err := json.Unmarshal(written, &s); err != nil {
		return nil, fmt.Errorf("prices: a sheet: %w", err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("prices: a sheet: %w", err)
	}
	s.Model.Copy = s.Model.Copies.At
	m.Model, m.First, m.Post, m.Lookup, m.Handler, m.Slotted, m.Piped = s.Model, s.First, s.Post, s.Lookup, s.Handler, s.Slotted, s.Piped
	m.Puts, m.Gets, m.Runs = s.Puts, s.Gets, s.Runs
	p := From(m, s.Small)
	p.Abroad = s.Abroad
	return p, nil
}

// What a sheet's numbers are within: far more than anything takes, and so little that what is computed of them is a number, too.
const (
	leastSpeed, mostSpeed = 1, 1e18 // bytes per second
	mostTime              = 1e6     // seconds
)

// isTime reports whether some seconds can have been measured.
func isTime(v float64) bool { return v >= 0 && v <= mostTime }

// isSpeed is isTime for bytes per second.
func isSpeed(v float64) bool { return v >= leastSpeed && v <= mostSpeed }

// check says what keeps a sheet from being one: times and speeds are such as can be, sizes grow, nothing but a difference is less than 0.
func (s *sheet) check() error {
	m := &s.Model
	for name, v := range map[string]float64{"bandwidth": m.Net, "bandwidth of registration": m.Reg} {
		if !isSpeed(v) {
			return fmt.Errorf("%s %v: want %v to %v bytes per second", name, v, float64(leastSpeed), mostSpeed)
		}
	}
	if !(m.Gap > 0) {
		return fmt.Errorf("gap %v: want more than 0", m.Gap)
	}
	for name, v := range map[string]float64{
		"gap": m.Gap, "latency": m.Latency, "latency of registration": m.RegLatency, "cut": m.Cut, "start of fresh copies": m.FreshStart,
		"first use of a byte": s.First, "post": s.Post, "lookup": s.Lookup, "handler": s.Handler,
	} {
		if !isTime(v) {
			return fmt.Errorf("%s %v: want 0 to %v s", name, v, mostTime)
		}
	}
	if !(m.Slowed >= 0 && m.Slowed <= mostSpeed) || m.Fresh != 0 && !isSpeed(m.Fresh) {
		return fmt.Errorf("slowing %v, fresh copies %v: want 0 or more, and a speed or 0", m.Slowed, m.Fresh)
	}
	last := 0.0
	for _, p := range m.Copies {
		if p.Bytes <= last || !isSpeed(p.Speed) {
			return fmt.Errorf("copies of %v bytes at %v bytes per second behind %v bytes: want growing sizes, and %v to %v", p.Bytes, p.Speed, last, float64(leastSpeed), mostSpeed)
		}
		last = p.Bytes
	}
	if last == 0 {
		return errors.New("no speed of copies")
	}
	for _, c := range [...]cost.Curve{m.Writes, m.Reads} {
		for i, p := range c {
			if !(p.Nanos > 0) || !isSpeed(float64(p.N)/(p.Nanos*nanosecond)) || i > 0 && (p.N <= c[i-1].N || p.Nanos < c[i-1].Nanos) {
				return fmt.Errorf("writes or reads of %d bytes take %v ns: want growing sizes and times", p.N, p.Nanos)
			}
		}
	}
	if !slices.EqualFunc(m.Writes, m.Reads, func(w, r cost.Sample) bool { return w.N == r.N }) { // both are measured at all sizes
		return errors.New("writes and reads of different sizes")
	}
	for _, t := range [...]float64{s.Slotted.Put, s.Slotted.Get, s.Piped.Put, s.Piped.Get} {
		if !isTime(math.Abs(t)) {
			return fmt.Errorf("a byte more by %v s: want at most %v", t, mostTime)
		}
	}
	for _, all := range [...][selector.Protocols]selector.More{s.Puts, s.Gets, s.Runs} {
		for p, more := range all {
			for i, at := range more {
				if at.Bytes < 0 || i > 0 && at.Bytes <= more[i-1].Bytes || !isTime(math.Abs(at.Seconds)) {
					return fmt.Errorf("%v of %d bytes, more by %v s: want growing sizes, and at most %v s", selector.Protocol(p), at.Bytes, at.Seconds, mostTime)
				}
			}
		}
	}
	return nil
}
