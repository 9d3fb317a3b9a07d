package prices

import (
	"errors"
	"slices"
	"sync"
	"time"

	"gopgas/eager"
	"gopgas/internal/callsite"
	"gopgas/internal/mem"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
)

// How small transfers are measured: rounds through the slots and past them by turns, and of each way the least round counts, since
// what disturbs makes longer, never shorter. A NIC that is a program takes longer for them as long as it is wide awake from what was measured before.
const (
	smallOps      = 16                   // of a round
	smallLeast    = 4                    // rounds, however long they take
	smallTime     = 2 * time.Millisecond // for the others, undisturbed
	smallPatience = 8                    // times as long otherwise
	frames        = 3                    // that a put's caller leaves out: those of this library
	tie           = 32                   // past the slots is to save so small a part at least: out of the cold the copy is what goes on fastest
)

// bySlot is what small puts, and gets, take in seconds: through a slot, and past it.
type bySlot struct {
	bytes   int
	through [2]float64
	past    [2]float64
}

// small measures the costs of small puts, gets and messages.
func (c *Config) small(m *superpipe.Model) (all [3]eager.Costs, small bySlot, err error) {
	cache, err := regmgr.New(regmgr.Config{Policy: regmgr.LeavePinned, Registrar: c.NIC, Sched: c.Sched, Quiet: true})
	if err != nil {
		return all, small, err
	}
	small.bytes = c.Inline + 8 // what is smaller needs no slot
	var busy sync.Mutex        // in the place of Habits's, which others may hold
	costs := eager.Measurement{
		Now: c.Sched.Now, Registrar: c.NIC, Largest: c.Machine.Slot,
		Ask: func(get bool) {
			busy.Lock()
			defer busy.Unlock()
			if !get {
				var stack callsite.Stack
				callsite.Here(&stack, frames)
				_ = stack.Hash()
			}
		},
		Past: func(get bool) (time.Duration, error) {
			through, past, err := c.past(get, small.bytes, cache)
			i := side(get)
			small.through[i], small.past[i] = through.Seconds(), past.Seconds()
			return past - through, err
		},
		Longer: func(get bool, bytes int) (time.Duration, error) {
			through, past, err := c.past(get, bytes, cache)
			return past + past/tie - through, err
		},
		LongerFrom: AskedFrom,
		Wire:       func(bytes int) time.Duration { return time.Duration(m.Put(float64(bytes)) / nanosecond) },
	}
	if all[0], all[1], err = eager.Measure(costs); err == nil {
		all[2], err = c.sends(all[0], c.near().Slice(0, small.bytes), cache)
	}
	return all, small, errors.Join(err, cache.Close())
}

// sends is what messages with a payload cost: what they do more where it is not copied is to have its registration found and held, which is
// measured with user's.
func (c *Config) sends(puts eager.Costs, user mem.Range, cache *regmgr.Manager) (eager.Costs, error) {
	var held [1]time.Duration
	err := leasts(c.Sched.Now, held[:], func() error {
		var hold regmgr.Hold
		if err := cache.Acquire(&hold, regmgr.Request{Mem: user}); err != nil {
			return err
		}
		cache.Release(&hold)
		return nil
	})
	all := answered(puts, assumedHandler/nanosecond)
	for i := range all {
		all[i].Lookup = all[i].Ask + float64(held[0])
	}
	return all, err
}

// answered is the costs of puts made those of messages, whose sources are free when the answer is here.
func answered(puts eager.Costs, handler float64) eager.Costs {
	all := slices.Clone(puts)
	for i := range all {
		all[i].Wire = 2*all[i].Wire + handler
	}
	return all
}

// side is the place of puts, or gets, in tables of both.
func side(get bool) int {
	if get {
		return 1
	}
	return 0
}

// past is how long a transfer of a few bytes takes through the slots, and past them.
func (c *Config) past(get bool, bytes int, cache *regmgr.Manager) (through, past time.Duration, err error) {
	user := c.near().Slice(0, bytes)
	ways := [...]func() error{
		func() error { return c.NIC.Slotted(get, user) },
		func() error { return c.NIC.Past(get, user, cache) },
	}
	var least [len(ways)]time.Duration
	began := c.Sched.Now()
	if err := leasts(c.Sched.Now, least[:], ways[:]...); err != nil {
		return 0, 0, err
	}
	return least[0], least[1], c.rest(c.Sched.Now() - began)
}

// leasts sets how long one of each of some functions takes, done many times by turns. How long that has taken is reckoned by what it takes undisturbed:
// rounds that somebody else has made long leave none of the others out, unless that goes on.
func leasts(now func() time.Duration, least []time.Duration, ways ...func() error) error {
	began := now()
	for round := time.Duration(0); ; round++ {
		each := time.Duration(0) // round, undisturbed
		for i, f := range ways {
			start := now()
			for range smallOps {
				if err := f(); err != nil {
					return err
				}
			}
			if took := (now() - start) / smallOps; round == 0 || took < least[i] {
				least[i] = took
			}
			each += max(1, least[i]) * smallOps
		}
		if made := round + 1; made >= smallLeast && (made*each >= smallTime || now()-began >= smallPatience*smallTime) {
			return nil
		}
	}
}
