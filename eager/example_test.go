package eager_test

import (
	"fmt"
	"time"

	"gopgas/eager"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// round are costs to reckon with by hand: a copy of 1 KiB takes 100 ns, a registration 1 µs, a look-up 50 ns.
func round() eager.Costs {
	return eager.Costs{
		{Bytes: 1 << 10, Copy: 100, Register: 1000, Lookup: 50, Wire: 500},
		{Bytes: 8 << 10, Copy: 800, Register: 1000, Lookup: 50, Wire: 1200},
	}
}

// A registration pays after n uses where n copies cost more than it and n look-ups: more than 1000/(100-50).
func ExampleCost() {
	c := round().At(1 << 10)
	n, ok := c.BreakEven()
	fmt.Println(n, ok, eager.Speculate(n, eager.DefaultPercent))
	// Output: 21 true 6
}

// The decision by itself: values in, value out.
func ExampleDecide() {
	mode, err := eager.ParseMode("auto")
	if err != nil {
		fmt.Println(err)
		return
	}
	m := mode
	limits := eager.Limits{Inline: 128, Slot: 8 << 10}
	for _, q := range []eager.Query{
		{Bytes: 64},
		{Bytes: 1 << 10},
		{Bytes: 1 << 10, Waited: true, Frequent: true},
	} {
		c := eager.Decide(m, q, limits, round().At(q.Bytes))
		fmt.Println(q.Bytes, c)
	}
	// Output:
	// 64 inline
	// 1024 bounce
	// 1024 bypass
}

// A buffer that is put again and again, and waited for each time.
func ExampleChooser() {
	var e *eager.Chooser
	e, err := eager.New(eager.Config{Limits: eager.Limits{Inline: 128, Slot: 8 << 10}, Costs: round()})
	if err != nil {
		fmt.Println(err)
		return
	}
	var choices []eager.Choice
	for range 7 {
		choices = append(choices, e.Put(0xc000010000, 1<<10, 1, true, false))
	}
	fmt.Println(choices)
	s := e.Stats()
	fmt.Println(s.Bounce, "bounced,", s.Bypass, "past the slots;", s.Buffers, "buffer known")
	// Output:
	// [bounce bounce bounce bounce bounce bypass bypass]
	// 5 bounced, 2 past the slots; 1 buffer known
}

// The count behind it.
func ExampleTable() {
	t := eager.NewTable()
	for range 3 {
		fmt.Print(t.Use(0xc000010000, 3), " ")
	}
	u := t.Usage()
	fmt.Println(u.Buffers, u.Frequent)
	// Output: false false true 1 1
}

// free registers for nothing.
type free struct{}

func (free) Register(mem.Range, transport.Access) (transport.Region, error) {
	return transport.Region{}, nil
}
func (free) Deregister(transport.Region) error { return nil }

// What transfers cost on this machine.
func ExampleMeasure() {
	start := time.Now()
	var nic eager.Registrar = free{}
	costs, _, err := eager.Measure(eager.Measurement{Now: func() time.Duration { return time.Since(start) }, Registrar: nic, Largest: 4 << 10})
	fmt.Println(len(costs) > 1, costs.At(4<<10).Copy > 0, err)
	// Output: true true <nil>
}

// A put that is often followed by a flush is known by where it is called from.
func ExampleSites() {
	const site = 0x46d2a0 // a hash of the call's stack
	var s eager.Sites
	for range 4 {
		fmt.Print(s.Put(site), " ")
		s.Flushed()
	}
	fmt.Println()
	// Output: false true true true
}
