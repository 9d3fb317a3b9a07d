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
	// Ask does what a put, or a get, does beside asking the usage table when that is asked. nil: nothing.
	Ask func(get bool)
	// Past returns how much longer a put, or a get, of nearly nothing takes past the slots than through them, from and into
	// memory that is registered: the registration cache, a reference, a wait of its own. nil: nothing.
	Past func(get bool) (time.Duration, error)
	// Longer is Past for one of so many bytes, less what the copy takes that it saves; it is asked for those of LongerFrom bytes and more. nil: those, too,
	// are taken to save the whole of their copy.
	Longer     func(get bool, bytes int) (time.Duration, error)
	LongerFrom int
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
	measureBits   = 12 // of the table that is looked up: it stays in the caches, and what the large one costs beside that is measured apart
)

// Measure measures the costs of small puts and gets on this machine and NIC, at powers of two up to the largest. It takes a
// few milliseconds, borrows up to 32 MiB of memory for that, and leaves nothing registered. A registration that is refused is its error.
func Measure(m Measurement) (puts, gets Costs, err error) {
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
	cold := newCold(m.Now, coldMemory)
	defer cold.free()
	var ask, past [2]float64 // of puts, of gets
	for i, get := range [...]bool{false, true} {
		ask[i] = m.least(repetitions, func(k int) {
			table.Use(source(k, 0).Addr(), never)
			if m.Ask != nil {
				m.Ask(get)
			}
		})
		if m.Past != nil {
			d, err := m.Past(get)
			if err != nil {
				return nil, nil, fmt.Errorf("measure small transfers past the slots: %w", err)
			}
			past[i] = float64(d)
		}
	}
	for bytes := smallest; ; bytes *= 2 {
		bytes = min(bytes, m.Largest)
		c := Cost{Bytes: bytes, Wire: unknownWire}
		c.Copy = m.least(repetitions, func(i int) { mem.Copy(slot.Data(), source(i, bytes).Data()) })
		c.Register = m.least(registrations, func(i int) {
			region, e := m.Registrar.Register(source(i, bytes), transport.LocalWrite)
			if e == nil {
				e = m.Registrar.Deregister(region)
			}
			if e != nil {
				err = e
			}
		})
		c.ColdCopy, c.ColdAsk = cold.copies(m.Now, source(0, bytes)), linesAsked*cold.line
		if err != nil {
			return nil, nil, fmt.Errorf("measure the registration of %d bytes: %w", bytes, err)
		}
		if m.Wire != nil {
			c.Wire = float64(m.Wire(bytes))
		}
		for i, all := range [...]*Costs{&puts, &gets} {
			more := past[i]
			if m.Longer != nil && bytes >= m.LongerFrom {
				d, err := m.Longer(i == 1, bytes)
				if err != nil {
					return nil, nil, fmt.Errorf("measure %d bytes past the slots: %w", bytes, err)
				}
				more = float64(d) + c.Copy
			}
			c.Ask, c.Lookup = ask[i], max(0, ask[i]+more)
			*all = append(*all, c)
		}
		if bytes == m.Largest {
			return puts, gets, nil
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
