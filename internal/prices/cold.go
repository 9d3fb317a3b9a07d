package prices

import (
	"context"
	"errors"
	"slices"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/selector"
	"gopgas/regmgr"
	"gopgas/transport"
)

// Transfers of memory that is in no cache. A large transfer seldom finds its memory there: of buffers that take turns only what the others have left is. And of one
// that is as long as the caches neither end is there. What copies and NICs then do is done at the pace of main memory, of which neither what is small
// nor what is tried again and again at one place tells anything.
const (
	coldPiece = 2 << 20  // bytes of a transfer neither end of which is in a cache: long enough for its pace
	coldLeast = 64 << 10 // shorter ones tell no pace
	coldShare = 2        // so small a part of what caches hold a transfer is that leaves room there for neither end

	// ColdMost is so much memory that no core's share of a cache holds a half of it.
	ColdMost = 128 << 20

	// How it is found out what caches hold.
	cacheLeast = 8 << 20
	cachePiece = 1 << 20 // bytes of a copy
	cacheMore  = 1.25    // times as long a copy takes whose ends are in none
)

// cold hands out memory that has not been touched for longest, for one try at a time, and has it registered where that is wanted.
type cold struct {
	c     *Config
	at    int             // of the next piece
	cache *regmgr.Manager // keeps nothing
	hold  regmgr.Hold
	held  bool
	key   transport.Region
	keyed bool
	nic   NIC
	user  mem.Range
}

// afar returns the cold memory, none of which is registered.
func (c *Config) afar() (k *cold, err error) {
	k = &cold{c: c}
	k.cache, err = regmgr.New(regmgr.Config{Policy: regmgr.OnDemand, Registrar: c.NIC, Sched: c.Sched, Quiet: true})
	return k, err
}

// close gives back what a try that has failed has left.
func (k *cold) close() error {
	if k.cache == nil {
		return nil
	}
	return errors.Join(k.back(), k.cache.Close())
}

// finds reports whether transfers of so many bytes find their memory in a cache, and in none, unless it is always the same: as many of them as take
// turns take as much as caches hold, or a good part of that, of which some is there.
func (k *cold) finds(bytes int) (in, out bool) {
	turns := tuneTurns * bytes
	out = k.c.Cold.Bytes >= coldShare*bytes && turns >= k.c.caches/coldShare
	return !out || turns < k.c.caches && bytes <= k.c.near().Bytes/coldShare, out
}

// both is the length of transfers that are tried between ends neither of which is in a cache; 0: there is no memory for it.
func (k *cold) both() int {
	n := min(coldPiece, k.c.near().Bytes/2, k.c.Cold.Bytes/2, k.c.NIC.Caps().MaxMessage)
	if n < coldLeast {
		return 0
	}
	return n &^ 4095
}

// beyond is the size of transfers both ends of which find just room in a cache: from twice as much on all have the same pace.
func (c *Config) beyond() int { return c.caches / coldShare }

// measureCaches finds out how much memory finds room in caches, two sizes to a factor of two, as far as there is memory to see it in. It ends with ctx.
func (c *Config) measureCaches(ctx context.Context) error {
	if c.caches = c.Cold.Bytes; c.Cold.Bytes < 2*cacheLeast {
		return sched.Ended(ctx)
	}
	var all []tried
	known := 0
	for bytes, step := cacheLeast, cacheLeast/2; bytes <= c.Cold.Bytes; bytes += step { // 8, 12, 16, 24, 32 MiB
		if bytes == 4*step {
			step *= 2
		}
		took, err := c.within(ctx, bytes, known)
		if err != nil {
			return err
		}
		all = append(all, tried{bytes, took})
		known = bytes
	}
	if fits := roomy(all); fits < known {
		c.caches = fits
	}
	return nil
}

// roomy is the greatest of some sizes within which a copy takes no longer, or not much, than within that where it takes least.
func roomy(all []tried) (fits int) {
	least := all[0].seconds
	for _, t := range all {
		least = min(least, t.seconds)
	}
	for _, t := range all {
		if t.seconds <= cacheMore*least {
			fits = t.bytes
		}
	}
	return fits
}

// within is how long a copy takes of which neither end has been touched for so many bytes, in seconds: the median of those of one way through them. Of
// the bytes before known a way has just been made. It ends with ctx.
func (c *Config) within(ctx context.Context, bytes, known int) (seconds float64, err error) {
	var took []time.Duration
	for _, from := range [...]int{known, 0} { // the first way brings what fits
		took = took[:0]
		for at := from; at+2*cachePiece <= bytes; at += 2 * cachePiece {
			if err := sched.Ended(ctx); err != nil {
				return 0, err
			}
			began := c.Sched.Now()
			mem.Copy(c.Cold.Slice(at, cachePiece).Data(), c.Cold.Slice(at+cachePiece, cachePiece).Data())
			took = append(took, c.Sched.Now()-began)
		}
	}
	slices.Sort(took)
	return took[len(took)/2].Seconds(), nil
}

// Touched is the part of memory that the kernel gives within a time, when it is first written: that of what transfers are measured with.
func Touched(now func() time.Duration, all mem.Range, within time.Duration) mem.Range {
	const step = 1 << 20
	got := 0
	for began := now(); got < all.Bytes && (got == 0 || now()-began < within); got += step {
		clear(all.Slice(got, min(step, all.Bytes-got)).Data())
	}
	return all.Slice(0, min(got, all.Bytes))
}

// take returns the memory that comes next.
func (k *cold) take(bytes int) mem.Range {
	if k.at+bytes > k.c.Cold.Bytes {
		k.at = 0
	}
	r := k.c.Cold.Slice(k.at, bytes)
	k.at += bytes
	return r
}

// attempt is a transfer from or to cold memory, which is registered before if the NIC uses it; and so is the other end if it is to be cold as well.
func (k *cold) attempt(p selector.Protocol, get bool, bytes int, both bool) attempt {
	return attempt{
		p: p, get: get, bytes: bytes, both: both,
		before: func() error { return k.ready(p, bytes, both) },
		make:   func(int) error { return one(k.nic, p, get, k.user, k.cache) },
		after:  k.back,
	}
}

// ready takes the memory of a try.
func (k *cold) ready(p selector.Protocol, bytes int, both bool) error {
	whole := bytes
	if both {
		whole *= 2 // taken together: where there is little memory the second piece could come to lie in the first
	}
	ends := k.take(whole)
	k.user, k.nic = ends.Slice(0, bytes), k.c.NIC
	if p == selector.Direct {
		if err := k.cache.Acquire(&k.hold, regmgr.Request{Mem: k.user, Access: transport.LocalWrite}); err != nil {
			return err
		}
		k.held = true
	}
	if both {
		far := ends.Slice(bytes, bytes)
		key, err := k.c.NIC.Register(far, transport.LocalWrite|transport.RemoteWrite|transport.RemoteRead)
		if err != nil {
			return err
		}
		k.key, k.keyed = key, true
		k.nic = k.nic.With(far, key)
	}
	if !k.held && !k.keyed {
		return nil
	}
	return k.c.wake()
}

// wake makes a small transfer before one that counts: a NIC that is a program may have fallen asleep while memory was registered.
func (c *Config) wake() error {
	return c.NIC.Slotted(false, c.near().Slice(0, min(tuneLeast, c.near().Bytes)))
}

// back gives the memory of a try back.
func (k *cold) back() (err error) {
	if k.keyed {
		err = k.c.NIC.Deregister(k.key)
	}
	if k.held {
		k.cache.Release(&k.hold)
	}
	k.held, k.keyed = false, false
	return err
}

// paced is own which goes on in proportion up to transfers whose ends together find just room in a cache, and from twice as much on, where neither does, at
// the pace of such ones, seconds a byte. Between them a part of what comes again is still there: caches do not forget all at once.
func paced(own selector.More, s *selector.Selector, p selector.Protocol, get bool, from int, pace float64) selector.More {
	if len(own) == 0 || own[len(own)-1].Bytes >= from-1 || pace <= 0 {
		return own
	}
	model := func(bytes int) float64 { return s.Cost(p, query(p, get, bytes)) }
	last := own[len(own)-1]
	before := last.Seconds
	if last.Bytes >= coldPiece {
		before = (model(last.Bytes)+last.Seconds)*float64(from-1)/float64(last.Bytes) - model(from-1)
	}
	beside := func(bytes int) float64 { return pace*float64(bytes) - model(bytes) }
	first := beside(2 * from)
	each := (beside(4*from) - first) / float64(2*from)
	return append(own, point(from-1, before), point(2*from, max(first, before)), point(selector.Onward, first+each*float64(selector.Onward-2*from)))
}
