package prices

import (
	"math"

	"gopgas/eager"
	"gopgas/internal/cost"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/transport"
)

// Told returns the prices of a machine that says what it costs. Of m only what is known without that is looked at. The library's own part
// of a transfer, which nothing in such a machine takes, is none.
func Told(m selector.Machine, c transport.Costs) *Prices {
	m.Model, m.Post, m.Lookup, m.Handler = modelOf(c), c.Post.Seconds(), 0, c.Handle.Seconds()
	p := New(m.Selector(0))
	p.Small[0], p.Small[1] = smallOf(m, c, false), smallOf(m, c, true)
	p.Small[2] = answered(p.Small[0], c.Handle.Seconds()/nanosecond)
	return p
}

// longestWire is the end of the curves of writes and reads, which are straight: bytes.
const longestWire = 1 << 30

// modelOf is such a machine's costs as the superpipeline's model.
func modelOf(c transport.Costs) superpipe.Model {
	wire := func(nothing float64) cost.Curve {
		return cost.Curve{{N: 1, Nanos: nothing}, {N: longestWire, Nanos: nothing + longestWire*c.PerByte/nanosecond}}
	}
	m := superpipe.Model{
		Gap: c.Gap.Seconds(), Latency: c.Latency.Seconds(), Net: math.Inf(1), RegLatency: c.Register.Seconds(), Reg: math.Inf(1),
		Copy: func(bytes float64) float64 {
			const part = 1 << 20 // the speed depends on the whole
			if took := c.Copy(part, int(bytes)).Seconds(); took > 0 {
				return part / took
			}
			return math.Inf(1)
		},
		Writes: wire(float64(c.Write)), Reads: wire(float64(c.Read)),
	}
	if c.PerByte > 0 {
		m.Net = 1 / c.PerByte
	}
	if c.RegisterPage > 0 {
		m.Reg = float64(c.PageBytes) / c.RegisterPage.Seconds()
	}
	return m
}

// smallOf is the costs of small puts, or gets, of such a machine.
func smallOf(m selector.Machine, c transport.Costs, get bool) (all eager.Costs) {
	for bytes := 64; bytes <= m.Slot; bytes *= 2 {
		wire := c.Write
		if get {
			wire = c.Read
		}
		pages := int64((bytes + c.PageBytes - 1) / c.PageBytes)
		all = append(all, eager.Cost{
			Bytes: bytes, Copy: float64(c.Copy(bytes, bytes)), Wire: float64(wire) + float64(bytes)*c.PerByte/nanosecond,
			Register: float64(int64(c.Register+c.Deregister) + pages*int64(c.RegisterPage+c.DeregisterPage)),
		})
	}
	return all
}
