package eager

import (
	"fmt"
	"math"
	"slices"
)

// Cost is what was measured for transfers of one size, in nanoseconds: one after another, with all that they touch in the caches, and what
// they take longer where the program has done other work since, so that neither the slot nor the usage table is there any more.
type Cost struct {
	Bytes    int
	Copy     float64 // C_m: into a slot, measured as transfers do it
	Register float64 // R_m: register and, in time, deregister
	Lookup   float64 // V: all that a transfer past the slots does and one through them does not, but for the registration
	Wire     float64 // from posting to the completion that frees the source; for a plain put
	Ask      float64 // the usage table's part of Lookup, which a use pays that then goes through a slot too
	ColdCopy float64 // what Copy takes longer out of the cold
	ColdAsk  float64 // what Ask, and with it Lookup, takes longer then
}

// saved is what a use past the slots saves: the less of both cases, since nobody knows which one he is in.
func (c Cost) saved() float64 {
	hot := c.Copy - c.Lookup
	return min(hot, hot+c.ColdCopy-c.ColdAsk)
}

// Costs is a cost model: points in growing order of size, with straight lines between them and the last line going on.
type Costs []Cost

// validate says what is wrong with a cost model.
func (c Costs) validate() error {
	if len(c) == 0 {
		return fmt.Errorf("eager: a cost model without points")
	}
	for i, p := range c {
		if i > 0 && p.Bytes <= c[i-1].Bytes || p.Bytes < 0 {
			return fmt.Errorf("eager: point %d of the cost model is for %d bytes: sizes grow", i, p.Bytes)
		}
		for _, v := range [...]float64{p.Copy, p.Register, p.Lookup, p.Wire, p.Ask, p.ColdCopy, p.ColdAsk} {
			if !(v >= 0) || math.IsInf(v, 0) {
				return fmt.Errorf("eager: point %d of the cost model, %d bytes, has a cost of %v", i, p.Bytes, v)
			}
		}
	}
	return nil
}

// At returns the costs of a size. It does not allocate.
func (c Costs) At(bytes int) Cost {
	i, _ := slices.BinarySearchFunc(c, bytes, func(p Cost, b int) int { return p.Bytes - b })
	i = min(max(i, 1), len(c)-1)
	if len(c) == 1 {
		p := c[0]
		p.Bytes = bytes
		return p
	}
	a, b := c[i-1], c[i]
	x := float64(bytes-a.Bytes) / float64(b.Bytes-a.Bytes)
	if bytes < a.Bytes {
		x = 0
	}
	line := func(a, b float64) float64 { return max(0, a+x*(b-a)) }
	return Cost{
		Bytes: bytes, Copy: line(a.Copy, b.Copy), Register: line(a.Register, b.Register), Lookup: line(a.Lookup, b.Lookup),
		Wire: line(a.Wire, b.Wire), Ask: line(a.Ask, b.Ask), ColdCopy: line(a.ColdCopy, b.ColdCopy), ColdAsk: line(a.ColdAsk, b.ColdAsk),
	}
}

// BreakEven returns n(m): the least number of uses that repays a registration, n > R/(C-V) (inequality 3 of the paper;
// 4 and 5 lead to the same for one-sided operations). ok is false where V is not below C: there is no such number.
func (c Cost) BreakEven() (n float64, ok bool) {
	save := c.saved()
	if save <= 0 {
		return math.Inf(1), false
	}
	return math.Floor(c.Register/save) + 1, true
}

// asked reports whether the usage table is to be asked at all: a use that it finds frequent saves at least what one costs for
// which it has been asked in vain.
func (c Cost) asked() bool {
	hot := c.Copy - c.Lookup
	return hot >= c.Ask && hot+c.ColdCopy-c.ColdAsk >= c.Ask+c.ColdAsk
}

// pays reports whether a use past the slots is cheaper of memory that is known to be registered, so that the usage table is not asked.
func (c Cost) pays() bool { return c.Copy > c.Lookup-c.Ask }

// seldom is the cost where the usage table is asked about one use in so many only.
func (c Cost) seldom(of int) Cost {
	part := c.Ask / float64(of)
	c.Lookup = max(0, c.Lookup-c.Ask+part)
	c.Ask, c.ColdAsk = part, c.ColdAsk/float64(of)
	return c
}

// Speculate returns the uses after which a buffer is registered: so many percent of its break-even count, rounded up,
// in the hope of the others. It is at least 2 where n is: a first use gives no hope of another one.
func Speculate(n float64, percent int) float64 {
	return max(min(n, 2), math.Ceil(n*float64(percent)/100))
}

// classBits: thresholds are kept per 64 bytes.
const classBits = 6

// thresholds holds n for each class of sizes, that of its smallest size.
type thresholds struct {
	uses  []uint32
	least int // the smallest size with a threshold; sizes below are not looked up
}

func newThresholds(costs []Cost, most, percent int) thresholds {
	t := thresholds{uses: make([]uint32, len(costs)), least: most + 1}
	for i, at := range costs {
		t.uses[i] = never
		n, ok := at.BreakEven()
		if n = Speculate(n, percent); ok && at.asked() && n <= mostUses {
			t.uses[i] = uint32(n)
			t.least = min(t.least, i<<classBits)
		}
	}
	return t
}

// of returns the threshold of a size within the most there is.
func (t *thresholds) of(bytes int) uint32 { return t.uses[bytes>>classBits] }
