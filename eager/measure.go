package eager

import (
	"fmt"
	"time"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// Registrar is what Measure registers with; a transport.Domain has it.
type Registrar interface {
	Register(r mem.Range, a transport.Access) (transport.Region, error)
	Deregister(r transport.Region) error
}

// Measurement is what Measure needs.
type Measurement struct {
	Now       func() time.Duration
	Registrar Registrar
	Largest   int // bytes; the largest slot
	// Lookup asks the registration cache for an address, as a transfer does. nil: there is none, it costs nothing.
	Lookup func(r mem.Range)
	// Wire returns how long a posted write of so many bytes keeps its source. nil: unknown, so that a put which nobody
	// waits for never bypasses.
	Wire func(bytes int) time.Duration
}

// How Measure works: each figure is the least of some attempts, of enough repetitions to be seen by the clock.
const (
	attempts      = 3
	repetitions   = 64
	registrations = 4
	smallest      = 64 // bytes
	unknownWire   = 1e15
	measureBits   = 12 // of the table that is looked up: few buffers touch few lines of a large one too
)

// Measure measures the costs of small transfers on this machine and NIC, at powers of two up to the largest. It takes a
// few milliseconds, and leaves nothing registered. A registration that is refused is its error.
func Measure(m Measurement) (Costs, error) {
	slot := mem.Of(make([]uint64, m.Largest/8+1))
	// Sources on pages of their own, at odd words, as a program's buffers lie.
	const sources = 16
	stride := (m.Largest + 8 + 4095) / 4096 * 4096
	users := mem.Of(make([]uint64, sources*stride/8+8))
	clear(users.Data())
	source := func(i, bytes int) mem.Range { return users.Slice(i%sources*stride+8, bytes) }
	table := newTable(measureBits)
	for i := range sources {
		table.Use(source(i, 0).Addr(), never)
	}
	var costs Costs
	for bytes := smallest; ; bytes *= 2 {
		bytes = min(bytes, m.Largest)
		c := Cost{Bytes: bytes, Wire: unknownWire}
		c.Copy = m.least(repetitions, func(i int) { copy(slot.Data(), source(i, bytes).Data()) })
		c.Lookup = m.least(repetitions, func(i int) {
			r := source(i, bytes)
			table.Use(r.Addr(), never)
			if m.Lookup != nil {
				m.Lookup(r)
			}
		})
		var err error
		c.Register = m.least(registrations, func(i int) {
			region, e := m.Registrar.Register(source(i, bytes), transport.LocalWrite)
			if e == nil {
				e = m.Registrar.Deregister(region)
			}
			if e != nil {
				err = e
			}
		})
		if err != nil {
			return nil, fmt.Errorf("measure the registration of %d bytes: %w", bytes, err)
		}
		if m.Wire != nil {
			c.Wire = float64(m.Wire(bytes))
		}
		costs = append(costs, c)
		if bytes == m.Largest {
			return costs, nil
		}
	}
}

// least returns the nanoseconds of one f, the least of some attempts.
func (m *Measurement) least(n int, f func(i int)) float64 {
	best := time.Duration(1<<63 - 1)
	for range attempts {
		began := m.Now()
		for i := range n {
			f(i)
		}
		best = min(best, m.Now()-began)
	}
	return float64(best) / float64(n)
}
