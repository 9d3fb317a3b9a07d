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

// Memory that only the program has touched so far. A NIC whose work the kernel does reads it by the kernel's view of it, which a virtual machine's host may
// not have made yet: it does then, page by page. Registering does not spare that, and registering again does not cost it again.
const (
	firstPiece = 64 << 10
	firstTries = 16
	firstFew   = 4 // of them at least, and others for so long at most
	firstTime  = 100 * time.Millisecond

	usedPart = 0.05 // of what a byte's wire takes a first use takes more, if that would show
)

// newness has m know what memory takes more that is new to the NIC, and none be new that transfers are tried with, where that would show. kept keeps the near half
// registered, and cache nothing.
func (c *Config) newness(m *selector.Machine, kept, cache *regmgr.Manager) (err error) {
	if m.First, err = c.first(cache); err != nil {
		return err
	}
	longest := c.longest(c.near().Bytes)
	return errors.Join(c.use(m, c.near(), longest, kept), c.use(m, c.Cold, longest, cache))
}

// longest is that of the transfers that are tried, where there are so many bytes at either end.
func (c *Config) longest(bytes int) int { return min(bytes/2, c.NIC.Caps().MaxMessage) }

// first is what a byte takes more when the NIC uses memory for the first time, in seconds: by puts from memory that nobody has used, each beside the same put once
// more. Three of four must tell so much; 0: they tell nothing.
func (c *Config) first(cache *regmgr.Manager) (seconds float64, err error) {
	bytes := min(firstPiece, c.near().Bytes, c.NIC.Caps().MaxMessage)
	if bytes < page {
		return 0, nil
	}
	all, free, err := unused(firstTries * bytes)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err == nil { // else a put may be under way still
			free()
		}
	}()
	clear(all.Data())
	var more []time.Duration
	began := c.Sched.Now()
	for k := range firstTries {
		if k >= firstFew && c.Sched.Now()-began >= firstTime {
			break
		}
		once, again, err := c.twice(all.Slice(k*bytes, bytes), cache)
		if err != nil {
			return 0, err
		}
		more = append(more, once-again)
	}
	slices.Sort(more)
	return max(0, more[len(more)/4].Seconds()) / float64(bytes), c.rest(c.Sched.Now() - began)
}

// twice is how long a put from some memory takes, and the same put once more, from a cache both. The memory is registered meanwhile.
func (c *Config) twice(user mem.Range, cache *regmgr.Manager) (once, again time.Duration, err error) {
	var hold regmgr.Hold
	if err := cache.Acquire(&hold, regmgr.Request{Mem: user, Access: transport.LocalWrite}); err != nil {
		return 0, 0, err
	}
	defer cache.Release(&hold)
	for _, took := range [...]*time.Duration{&once, &again} {
		clear(user.Data())
		if err := c.wake(); err != nil {
			return 0, 0, err
		}
		began := c.Sched.Now()
		if err := one(c.NIC, selector.Direct, false, user, cache); err != nil {
			return 0, 0, err
		}
		*took = c.Sched.Now() - began
	}
	return once, again, nil
}

// use has the NIC use memory once, by puts of at most so many bytes, where that takes so much more the first time that it would show: transfers of memory that is
// registered are of such as was used before. So are their other ends, which begin where the peer's memory does.
func (c *Config) use(m *selector.Machine, all mem.Range, longest int, cache *regmgr.Manager) error {
	if m.First*m.Model.Net < usedPart || longest <= 0 {
		return nil
	}
	for at := 0; at < all.Bytes; at += longest {
		began := c.Sched.Now()
		if err := one(c.NIC, selector.Direct, false, all.Slice(at, min(longest, all.Bytes-at)), cache); err != nil {
			return err
		}
		if err := c.rest(c.Sched.Now() - began); err != nil {
			return err
		}
	}
	return nil
}
