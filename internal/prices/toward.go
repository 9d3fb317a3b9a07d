package prices

import (
	"context"
	"errors"
	"slices"

	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
)

// A rank measures what transfers cost with itself, where it takes its time and has much memory. With a peer they go another way: the wire is longer, or, where
// the NIC is a program, another rank's processor does a part. So of some transfers of each kind it is measured by what factor they differ there, and what others take
// at home is taken to differ by factors between those, or, beyond the last size, by its.

// Loan is memory of another rank that it has lent to measure transfers with. The zero Loan is none.
type Loan struct {
	Rank      int
	Addr, Key uint64
	Bytes     int
}

// towardSizes are those of the transfers that are tried, and as long a one as there is memory for beside another.
var towardSizes = [...]int{tuneLeast, 16 << 10, 64 << 10, 256 << 10}

// Toward returns what p, which was measured, makes of transfers with the rank that has lent c.NIC's far half. It takes some tens of milliseconds. Else it is like Measure.
func (p *Prices) Toward(ctx context.Context, c Config, peer Loan) (*Prices, error) {
	if err := c.NIC.Connect(peer.Rank); err != nil {
		return nil, err
	}
	defer c.NIC.Alone()()
	m, near := p.Selector.Machine(), c.near()
	longest := min(near.Bytes, peer.Bytes)
	err := m.Model.Toward(ctx, superpipe.Bench{
		Sched: c.Sched, NIC: c.NIC, Poll: c.NIC.Poll, Hush: c.Hush, EP: transport.EP{Index: uint32(peer.Rank)},
		Local: transport.SGE{Mem: near, LKey: c.Key.LKey}, RAddr: peer.Addr, RKey: peer.Key, Longest: longest,
	})
	if err != nil {
		return nil, err
	}
	differ, err := c.differ(p.Selector, m, longest/2)
	if err != nil {
		return nil, err
	}
	differ.apply(p.Selector, &m)
	out := From(m, p.Small)
	out.Abroad = true
	return out, nil
}

// factors are by what transfers, puts and gets, take longer than others, by size: More holds factors here, no seconds.
type factors [2][selector.Protocols]selector.More

// differ finds out by what factors transfers differ from what home says. m is what the NIC's pipes are cut by.
func (c *Config) differ(home *selector.Selector, m selector.Machine, longest int) (f factors, err error) {
	c.NIC.Cut(m.Model)
	cache, hold, err := c.stays()
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, gone(cache, hold)) }()
	if hold != nil {
		if err := c.use(&m, c.near(), min(longest, c.NIC.Caps().MaxMessage), cache); err != nil {
			return f, err
		}
	}
	var all []attempt
	for _, get := range [...]bool{false, true} {
		for _, p := range [...]selector.Protocol{selector.Direct, selector.Bounce, selector.Pipe} {
			if p == selector.Direct && hold == nil || p == selector.Pipe && m.BulkSlot == 0 {
				continue
			}
			all = append(all, c.sized(p, get, &m, longest, cache)...)
		}
	}
	if err := brisk.passes(c.Sched.Now, c.rest, all, false); err != nil {
		return f, err
	}
	clock := clockTime(c.Sched.Now)
	for i := range all {
		if a := &all[i]; len(a.took) > 0 {
			a.clock = clock
			own := &f[side(a.get)][a.p]
			*own = append(*own, point(a.bytes, a.typical()/home.Cost(a.p, query(a.p, a.get, a.bytes))))
		}
	}
	return f, nil
}

// sized are the attempts by one protocol, by size.
func (c *Config) sized(p selector.Protocol, get bool, m *selector.Machine, longest int, cache *regmgr.Manager) (all []attempt) {
	near, most := c.near(), longest
	switch {
	case p == selector.Direct:
		most = min(most, c.NIC.Caps().MaxMessage)
	case m.BulkSlot == 0:
		most = min(most, m.Slot)
	}
	for _, bytes := range append(slices.Clone(towardSizes[:]), most) {
		if bytes <= most && (len(all) == 0 || all[len(all)-1].bytes < bytes) {
			all = append(all, attempt{p: p, get: get, bytes: bytes, make: func(k int) error { return one(c.NIC, p, get, turns(near, k, bytes), cache) }})
		}
	}
	return all
}

// apply has transfers on m, whose model is another than that of home, take as much longer than there as the factors say.
func (f *factors) apply(home *selector.Selector, m *selector.Machine) {
	bare := *m
	bare.Puts, bare.Gets = [selector.Protocols]selector.More{}, [selector.Protocols]selector.More{}
	s := bare.Selector(0)
	for i, own := range [...]*[selector.Protocols]selector.More{&m.Puts, &m.Gets} {
		for _, p := range [...]selector.Protocol{selector.Direct, selector.Bounce, selector.Pipe} {
			if by := f[i][p]; len(by) > 0 {
				own[p] = differing(home, s, own[p], by, p, i == 1)
			}
		}
		own[selector.Register], own[selector.Hybrid] = own[selector.Direct], own[selector.Pipe]
	}
	m.Puts[selector.Inline] = m.Puts[selector.Bounce]
	for p := range m.Runs {
		if by := f[0][p]; len(by) > 0 {
			m.Runs[p] = slices.Clone(m.Runs[p])
			for k := range m.Runs[p] {
				m.Runs[p][k].Seconds *= by.At(m.Runs[p][k].Bytes)
			}
		}
	}
}

// differing is what s, which knows no more than its model, lacks of transfers that take as much longer than home says as by does: at all sizes of either.
func differing(home, s *selector.Selector, own, by selector.More, p selector.Protocol, get bool) (out selector.More) {
	var sizes []int
	for _, o := range [...]selector.More{own, by} {
		for i := range o {
			sizes = append(sizes, o[i].Bytes)
		}
	}
	slices.Sort(sizes)
	for _, n := range slices.Compact(sizes) {
		q := query(p, get, n)
		out = append(out, point(n, home.Cost(p, q)*by.At(n)-s.Cost(p, q)))
	}
	return out
}
