package sched

import (
	"context"
	"time"
)

// maxVain is how many steps a wait may go on for after it was told that its world is stuck.
const maxVain = 1000

// mine returns the coroutine that has the token, which must be one of this world's.
func (m *Sim) mine() *coroutine {
	if m.current == nil {
		// bug: an action, or a goroutine from outside, waits in virtual time
		panic("sched: a wait in virtual time outside of a coroutine of the simulation")
	}
	return m.current
}

// standAside is a step of a wait after the world was found stuck: it lets all others who end their waits go first, since
// this one may wait for one of them, as a rank that closes waits for its helpers. It ends a coroutine that waits for ever.
func (c *coroutine) standAside() {
	if c.vain++; c.vain > maxVain {
		panic(errStopped)
	}
	c.wake()
	c.park()
}

// virtual is a step of a wait in virtual time: give the token away until something has happened to this rank, and
// then look again.
func (sp *Spin) virtual() error {
	r := sp.s.sim
	m := r.m
	c := m.mine()
	if sp.began == 0 {
		sp.began = max(1, m.Now())
		m.acted()
		// What this goroutine did before it began to wait may be what others of its rank wait for.
		r.ring()
	}
	if m.stuck != nil {
		c.standAside()
		return m.stuck
	}
	if err := Ended(sp.ctx); err != nil {
		return err
	}
	if sp.watch != nil {
		if err := sp.watch.Interrupted(); err != nil {
			// No last words as in real time: virtual news of an end is no faster than what was sent before it.
			return err
		}
	}
	if c.local > m.now {
		c.until(c.local) // busy; what has happened until then is seen then
		return nil
	}
	if help := sp.s.help.Load(); help != nil && help.progress() {
		m.acted()
		return nil
	}
	if m.looking && sp.rec == nil {
		sp.rec = sp.s.waits.add(sp.what, sp.began)
	}
	r.waiting = append(r.waiting, c)
	c.park()
	return nil
}

// sleep is Sched.Sleep.
func (r *simRank) sleep(ctx context.Context, d time.Duration) error {
	m := r.m
	c := m.mine()
	m.acted()
	r.ring()
	end := later(m.Now(), d)
	for m.now < end {
		if err := Ended(ctx); err != nil {
			return err
		}
		if m.stuck != nil {
			return m.stuck
		}
		c.alarm(end)
		if ctx != nil && ctx.Done() != nil {
			r.waiting, c.when = append(r.waiting, c), func() bool { return Ended(ctx) != nil }
		}
		c.park()
		c.when = nil
	}
	return Ended(ctx)
}

// waitFor parks until cond holds, which it reports, or for limit. cond changes nothing.
func (r *simRank) waitFor(limit time.Duration, cond func() bool) bool {
	m := r.m
	c := m.mine()
	c.tire()
	r.ring()
	end := later(m.Now(), limit)
	for !cond() && m.now < end {
		if m.stuck != nil {
			c.standAside()
			break
		}
		r.waiting, c.when = append(r.waiting, c), cond
		c.doze(end)
		c.when = nil
	}
	c.acted = m.activity
	if cond() {
		m.acted()
		return true
	}
	return false
}

// nap is Thread.Nap. It is a sleep that nothing is to come of: a world in which only those go on who nap again and again is stuck. But when something happens to the rank
// meanwhile, that may be what the thread looks for when it is up.
func (r *simRank) nap(d time.Duration) {
	m := r.m
	c := m.mine()
	c.tire()
	r.ring()
	for end := later(m.Now(), d); m.now < end; {
		if m.stuck != nil {
			c.standAside()
			break
		}
		if c.naps >= maxNaps {
			r.waiting, c.when = append(r.waiting, c), func() bool { return c.acted != m.activity }
		}
		c.doze(end)
		c.when = nil
		if c.acted != m.activity {
			c.naps = 0
		}
	}
	c.acted = m.activity
}

// tire counts a wait with a time limit.
func (c *coroutine) tire() {
	if c.acted == c.rank.m.activity {
		c.naps++
	} else {
		c.naps = 0
	}
}

// doze parks c, until end at most.
func (c *coroutine) doze(end time.Duration) {
	c.limit(end)
	if c.naps < maxNaps {
		c.setNap(fresh)
	} else {
		c.setNap(weary)
	}
	c.park()
	c.setNap(awake)
}

// napping says whether a coroutine is in a wait with a time limit, and whether it has waited so again and again in vain.
type napping uint8

const (
	awake napping = iota
	fresh
	weary
)

// setNap keeps the simulation's counts of such coroutines.
func (c *coroutine) setNap(to napping) {
	m := c.rank.m
	for _, change := range [...]struct {
		nap napping
		by  int
	}{{c.nap, -1}, {to, 1}} {
		if change.nap != awake {
			m.naps += change.by
		}
		if change.nap == weary {
			m.weary += change.by
		}
	}
	c.nap = to
}

// waitUntil is Sched.WaitUntil. The condition is looked at by whoever wakes the rank, so that nothing is switched for a
// wait that goes on.
func (r *simRank) waitUntil(ctx context.Context, cond func() bool) error {
	m := r.m
	c := m.mine()
	m.acted()
	r.ring()
	for !cond() {
		if err := Ended(ctx); err != nil {
			return err
		}
		if m.stuck != nil {
			return m.stuck
		}
		if c.local > m.now {
			c.until(c.local)
			continue
		}
		r.waiting, c.when = append(r.waiting, c), func() bool { return cond() || Ended(ctx) != nil }
		c.park()
		c.when = nil
	}
	return nil
}

// ringBell wakes the rank that sleeps on b, at the time of who rings.
func (m *Sim) ringBell(b Bell) {
	b.rings.Add(1)
	if r := m.bells[b.rings]; r != nil {
		r.ring()
	}
}

// waitBell is Bell.Wait. A bell that no rank answers is answered by who waits first.
func (m *Sim) waitBell(b Bell, seq uint32, limit time.Duration) bool {
	r := m.mine().rank
	if m.bells[b.rings] == nil {
		m.bells[b.rings] = r
	}
	return r.waitFor(limit, func() bool { return b.rings.Load() != seq })
}
