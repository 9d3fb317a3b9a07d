package prices

import (
	"errors"
	"slices"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/selector"
	"gopgas/regmgr"
	"gopgas/transport"
)

// How tune tries transfers. Each is tried in several passes over all of them, so that a
// disturbance of some length, or a NIC that sleeps or is wide awake for a while, spoils no more than a part of the tries of one thing; and in each pass
// for so long that what is short settles.
const (
	tunePasses = 5       // and as many tries at least
	tuneFewest = 3       // passes, however long they take
	tuneMost   = 1 << 10 // of them
	tuneLeast  = 64      // bytes
	tuneSmall  = 4 << 10 // bytes of the next
	tuneTurns  = 16      // pieces of memory, by turns
	tuneRun    = 16      // puts before a wait

	tuneLeastPiped = 16 << 10 // bytes of such a put that a pipe may carry

	tunePatience = 8 // times as long as undisturbed
	tuneRunLong  = 5 // times as long as what is long take puts before a wait that are tried but once
	tuneCold     = 2 // tries of cold memory in a pass, if they are shorter
)

// stride is how long things are tried.
type stride struct {
	time   time.Duration // for the tries of one thing in a pass
	long   time.Duration // what takes so long is tried once a pass
	enough time.Duration // for all passes but the fewest
}

// brisk is the stride on most NICs, and ample on one that is a program and slow: it and who waits for it wake each other through the system, and it is some
// milliseconds until they do that as in a row of equal transfers. The tries of a brisk one of tcp were a third too long.
var (
	brisk = stride{time: 250 * time.Microsecond, long: time.Millisecond, enough: 200 * time.Millisecond}
	ample = stride{time: time.Millisecond, long: 4 * time.Millisecond, enough: 800 * time.Millisecond}
)

const slowNIC = 3e-6 // latency, seconds

// strideOn is the stride on a NIC with such capabilities and such a latency, in seconds.
func strideOn(caps transport.Caps, latency float64) stride {
	if caps.Busy && latency >= slowNIC {
		return ample
	}
	return brisk
}

// attempt is a transfer that is tried.
type attempt struct {
	p      selector.Protocol
	get    bool
	bytes  int
	run    bool              // of so many bytes each, tuneRun of them and a wait: what one of them takes counts
	both   bool              // neither end is in a cache
	half   bool              // a part of the memory that takes turns is in a cache: there is an attempt with such memory, and one with cold
	before func() error      // what comes before each try; nil: nothing
	make   func(k int) error // try k
	after  func() error      // what comes after what was before
	took   []time.Duration
	clock  time.Duration // part of each of these
}

// tune finds out by how much transfers differ from their costs by the model: what this library's part of each takes, and
// what each byte does of those that are cut into chunks. It makes some, between both halves of the memory, whose chunks are those that the
// model is to say the costs of.
func (c *Config) tune(m *selector.Machine, small bySlot) (err error) {
	c.NIC.Cut(m.Model)
	cache, hold, err := c.stays()
	if err != nil {
		return err
	}
	far, err := c.afar()
	defer func() {
		err = errors.Join(err, gone(cache, hold), far.close())
	}()
	if err != nil {
		return err
	}
	if hold != nil {
		if err := c.newness(m, cache, far.cache); err != nil {
			return err
		}
	}
	var all []attempt
	for _, get := range [...]bool{false, true} {
		if hold != nil {
			all = append(all, c.direct(get, cache, far)...)
		}
		if !get && tuneLeast <= c.Cold.Bytes { // a registration is one
			all = append(all, far.attempt(selector.Register, false, tuneLeast, false))
		}
		all = append(all, c.copied(m, selector.Bounce, get, far)...)
		all = append(all, c.copied(m, selector.Pipe, get, far)...)
	}
	all = append(all, c.runs(m, cache, hold != nil)...)
	// What is in a cache comes first: what drives it from there, and keeps the NIC busy for long, would show in all others.
	clock := clockTime(c.Sched.Now)
	for _, cold := range [...]bool{false, true} {
		if err := strideOn(c.NIC.Caps(), m.Model.Latency).passes(c.Sched.Now, c.rest, all, cold); err != nil {
			return err
		}
	}
	for i := range all {
		all[i].clock = clock
	}
	c.tuned(m, small, all)
	return nil
}

// stays has the near half registered, as a program's memory is that is used often; hold is nil where the NIC does not register as much twice.
func (c *Config) stays() (cache *regmgr.Manager, hold *regmgr.Hold, err error) {
	if cache, err = regmgr.New(regmgr.Config{Policy: regmgr.LeavePinned, Registrar: c.NIC, Sched: c.Sched, Quiet: true}); err != nil {
		return nil, nil, err
	}
	hold = new(regmgr.Hold)
	if cache.Acquire(hold, regmgr.Request{Mem: c.near(), Access: transport.LocalWrite}) != nil {
		hold = nil // its transfers are as the NIC's
	}
	return cache, hold, nil
}

// gone gives back what stays has returned.
func gone(cache *regmgr.Manager, hold *regmgr.Hold) error {
	if hold != nil {
		cache.Release(hold)
	}
	return cache.Close()
}

// tuned writes down what was tried.
func (c *Config) tuned(m *selector.Machine, small bySlot, all []attempt) {
	s := m.Selector(0) // which knows the model alone
	both := [...]*[selector.Protocols]selector.More{&m.Puts, &m.Gets}
	for i, own := range both {
		get := i == 1
		own[selector.Direct] = more(s, from(small.bytes, small.past[i], of(all, selector.Direct, get)), selector.Direct, get)
		own[selector.Bounce] = cut(s, from(small.bytes, small.through[i], of(all, selector.Bounce, get)), selector.Bounce, get, &m.Slotted)
		own[selector.Pipe] = cut(s, of(all, selector.Pipe, get), selector.Pipe, get, &m.Piped)
	}
	bare := *m
	bare.Puts, bare.Gets = [selector.Protocols]selector.More{}, [selector.Protocols]selector.More{}
	s = bare.Selector(0) // which knows also what the bytes take of what is cut
	for i, own := range both {
		for _, p := range [...]selector.Protocol{selector.Direct, selector.Bounce, selector.Pipe} {
			own[p] = paced(own[p], s, p, i == 1, c.beyond(), pace(all, p, i == 1))
		}
		own[selector.Direct] = onwards(own[selector.Direct])
		own[selector.Register], own[selector.Hybrid] = own[selector.Direct], own[selector.Pipe]
		if i == 0 {
			own[selector.Inline] = own[selector.Bounce]
		}
	}
	registered(m, of(all, selector.Register, false))
	m.Runs = [selector.Protocols]selector.More{}
	for i := range all {
		if a := &all[i]; a.run && len(a.took) > 0 {
			m.Runs[a.p] = append(m.Runs[a.p], point(a.bytes, a.typical()/tuneRun))
		}
	}
}

// point is what something of so many bytes takes, or takes more.
func point(bytes int, seconds float64) struct {
	Bytes   int
	Seconds float64
} {
	return struct {
		Bytes   int
		Seconds float64
	}{bytes, seconds}
}

// registered sets what a registration costs by short transfers that made one each, and gave it back: that is what they took longer than direct ones.
// What a page takes is measured without transfers, whose bytes would show.
func registered(m *selector.Machine, all []tried) {
	if len(all) == 0 {
		return
	}
	direct := m.Selector(0).Cost(selector.Direct, query(selector.Direct, false, all[0].bytes))
	m.Model.RegLatency = max(nanosecond, all[0].seconds-direct)
}

// tried is a size and what a transfer of so many bytes took, in seconds.
type tried struct {
	bytes   int
	seconds float64
}

// of are the results of the attempts by one protocol in one direction, by size. Of a size that was tried with memory in a cache and with cold memory
// it is the mean: some of what takes turns is there, some not.
func of(all []attempt, p selector.Protocol, get bool) (out []tried) {
	for i := range all {
		a := &all[i]
		if a.p != p || a.get != get || a.both || a.run || len(a.took) == 0 {
			continue
		}
		if k := len(out) - 1; a.half && k >= 0 && out[k].bytes == a.bytes {
			out[k].seconds = (out[k].seconds + a.typical()) / 2
			continue
		}
		out = append(out, tried{a.bytes, a.typical()})
	}
	return out
}

// from is what was tried, of which what takes so long that is measured by itself is a part.
func from(bytes int, seconds float64, all []tried) []tried {
	if len(all) > 0 && all[0].bytes <= bytes {
		return all
	}
	return append([]tried{{bytes, seconds}}, all...)
}

// pace is what a byte takes by a protocol where neither end is in a cache, in seconds; 0: nobody has tried.
func pace(all []attempt, p selector.Protocol, get bool) float64 {
	for i := range all {
		if a := &all[i]; a.p == p && a.get == get && a.both && len(a.took) > 0 {
			return a.typical() / float64(a.bytes)
		}
	}
	return 0
}

// typical is what an attempt's tries took, in seconds, without the clock's own time: their median, since that is what most transfers take.
func (a *attempt) typical() float64 {
	slices.Sort(a.took)
	return max(a.took[(len(a.took)-1)/2]-a.clock, 1).Seconds()
}

// clockTime is how long reading the clock takes.
func clockTime(now func() time.Duration) time.Duration {
	var took [64]time.Duration
	for i := range took {
		began := now()
		took[i] = now() - began
	}
	slices.Sort(took[:])
	return took[len(took)/2]
}

// isCold reports whether its memory is in no cache.
func (a *attempt) isCold() bool { return a.before != nil }

// warm is how many tries of a pass do not count, at most: before them others were made, for long, and have driven from the caches what
// a try finds there that comes after one of its own kind. That is the other end of a long one, and all of those that take turns.
func (a *attempt) warm() int {
	if a.isCold() {
		return 1
	}
	return tuneTurns
}

// count is how many tries of a pass count at least, unless they take very long.
func (a *attempt) count() int {
	if a.isCold() {
		return tuneCold
	}
	return 1
}

// copied are transfers by a protocol that copies: of sizes up to a slot, and of longer ones, where they are cut. The longest says how the bytes of
// any longer one go on.
func (c *Config) copied(m *selector.Machine, p selector.Protocol, get bool, far *cold) (all []attempt) {
	if p == selector.Pipe && m.BulkSlot == 0 {
		return nil
	}
	near := c.near()
	sizes, long := tuneSizes(min(m.Slot, near.Bytes)), near.Bytes/2
	cuts := m.BulkSlot > 0 && long > m.Slot
	if cuts {
		for n := tuneSmall; n < long; n *= 4 {
			if n > m.Slot {
				sizes = append(sizes, n)
			}
		}
		sizes = append(sizes, long)
	}
	for _, bytes := range sizes {
		all = append(all, c.attempts(p, get, bytes, near, nil, far)...)
	}
	if n := far.both(); cuts && n > 0 {
		all = append(all, far.attempt(p, get, n, true))
	}
	return all
}

// runs are puts before a wait, as a program makes them that does not flush each, of memory that it uses again and again. Those of few bytes are
// of sizes of which something is chosen.
func (c *Config) runs(m *selector.Machine, cache *regmgr.Manager, direct bool) (all []attempt) {
	near := c.near()
	for _, p := range [...]selector.Protocol{selector.Direct, selector.Bounce, selector.Pipe} {
		if p == selector.Direct && !direct || p == selector.Pipe && m.BulkSlot == 0 {
			continue
		}
		for bytes := tuneSmall; tuneRun*bytes <= near.Bytes && bytes <= c.NIC.Caps().MaxMessage; bytes *= 4 {
			if p == selector.Pipe && bytes < tuneLeastPiped {
				continue
			}
			user := near.Slice(0, tuneRun*bytes)
			all = append(all, attempt{p: p, run: true, bytes: bytes, make: func(int) error { return c.NIC.Run(p, user, bytes, cache) }})
		}
	}
	return all
}

// attempts are those of one size: with memory that is in a cache, with cold memory, or with both.
func (c *Config) attempts(p selector.Protocol, get bool, bytes int, near mem.Range, cache *regmgr.Manager, far *cold) (all []attempt) {
	in, out := far.finds(bytes)
	if in {
		all = append(all, attempt{p: p, get: get, bytes: bytes, make: func(k int) error { return one(c.NIC, p, get, turns(near, k, bytes), cache) }})
	}
	if out {
		a := far.attempt(p, get, bytes, false)
		a.half = in
		all = append(all, a)
	}
	return all
}

// direct are transfers of registered memory, of all sizes that there is memory for: where who waits for a transfer lends the NIC a hand it takes
// another time than the NIC alone.
func (c *Config) direct(get bool, cache *regmgr.Manager, far *cold) (all []attempt) {
	near := c.near()
	for _, bytes := range tuneSizes(c.longest(near.Bytes)) {
		all = append(all, c.attempts(selector.Direct, get, bytes, near, cache, far)...)
	}
	if n := far.both(); n > 0 {
		all = append(all, far.attempt(selector.Direct, get, n, true))
	}
	return all
}

// tuneSizes are those that are tried up to a most.
func tuneSizes(most int) (all []int) {
	for bytes := tuneSmall; bytes <= most; bytes *= 4 {
		all = append(all, bytes)
	}
	if len(all) > 0 {
		all = append([]int{tuneLeast}, all...) // between them all cost the same, nearly
	}
	return all
}

// turns is the memory of try k: that of each begins where the one before has ended, as long as there is some, and of tuneTurns at most: as a
// program's buffers, which are in a cache if they are small.
func turns(near mem.Range, k, bytes int) mem.Range {
	return near.Slice(k%tuneTurns*bytes%max(1, near.Bytes-bytes+1)&^7, bytes)
}

// query is a transfer that is tried.
func query(p selector.Protocol, get bool, bytes int) selector.Query {
	return selector.Query{Bytes: bytes, Get: get, Waited: true, Covered: p == selector.Direct}
}

// one makes one transfer by a protocol; cache keeps its memory registered if it is direct.
func one(nic NIC, p selector.Protocol, get bool, user mem.Range, cache *regmgr.Manager) error {
	switch p {
	case selector.Direct, selector.Register: // which differ by what cache keeps
		return nic.Past(get, user, cache)
	case selector.Pipe:
		return nic.Piped(get, user)
	default:
		return nic.Slotted(get, user)
	}
}

// passes makes all attempts with cold memory, or all others, by turns, some tries of each at a time, and notes what they took. What the NIC has no
// room for is left out.
func (s stride) passes(now func() time.Duration, rest func(worked time.Duration) error, all []attempt, cold bool) error {
	worked := time.Duration(0)
	for pass := range tunePasses {
		if pass >= tuneFewest && worked > s.enough {
			break
		}
		for i := range all {
			a := &all[i]
			if a.isCold() != cold || a.run && len(a.took) > 0 && a.took[0] >= tuneRunLong*s.long {
				continue
			}
			began := now()
			if err := a.pass(now, s); err != nil && !errors.Is(err, transport.ErrLimit) {
				return err
			}
			took := now() - began
			worked += took
			if err := rest(took); err != nil {
				return err
			}
		}
	}
	return nil
}

// pass makes some tries. How long they have taken is reckoned by the quickest, so that being disturbed leaves none of the others out, unless that goes on.
func (a *attempt) pass(now func() time.Duration, s stride) error {
	over := now()
	for first, n := over, a.warm(); n > 0 && over-first < s.time; n-- {
		took, err := a.try(now, &over)
		if err != nil {
			return err
		}
		if took >= s.long { // it counts, since there are few of them
			a.took = append(a.took, took)
			return nil
		}
	}
	first, least, all := over, time.Duration(1<<63-1), time.Duration(0)
	for n := 0; n == 0 || n < a.count() && all < s.long || n < tuneMost && time.Duration(n)*least < s.time && over-first < tunePatience*s.time; n++ {
		began := over
		took, err := a.try(now, &over)
		if err != nil {
			return err
		}
		a.took = append(a.took, took)
		least, all = min(least, over-began), all+took
	}
	return nil
}

// try makes one try, and returns how long it took, without what comes before and after; over is when all of it is, and was when it began.
func (a *attempt) try(now func() time.Duration, over *time.Duration) (took time.Duration, err error) {
	began := *over
	if a.before != nil {
		if err := a.before(); err != nil {
			return 0, errors.Join(err, a.after())
		}
		began = now()
	}
	err = a.make(len(a.took))
	*over = now()
	took = *over - began
	if a.after != nil {
		err = errors.Join(err, a.after())
		*over = now()
	}
	return took, err
}
