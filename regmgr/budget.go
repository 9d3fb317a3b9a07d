package regmgr

import (
	"sync"
	"time"

	"gopgas/internal/invariants"
)

// Budget is how much memory a rank may have registered at once, and how much it has. Make one with NewBudget; all
// methods may be called by any goroutine and none waits.
type Budget struct {
	mu         sync.Mutex
	maxBytes   int64 // 0: no limit
	maxRegions int
	now        func() time.Duration
	use        Usage

	// Of what the cache has charged, what is not registered yet, and may never be: somebody else may be faster, or the NIC refuse.
	pendingBytes   int64
	pendingRegions int

	// What others than the cache have charged, and what is kept for them whether they have or not: the cache has the
	// rest, so that what it refers to never stands in the way of a promise.
	lentBytes, promisedBytes     int64
	lentRegions, promisedRegions int
	// Of what is lent, what the cache uses, too: it is registered once, but part of what the cache may have, since it stays when the others
	// let go of it.
	jointBytes   int64
	jointRegions int

	area  float64 // byte-nanoseconds, up to since
	began time.Duration
	since time.Duration
}

// Usage is what is charged to a Budget.
type Usage struct {
	Bytes   int64 // now
	Regions int   // registrations now
	// PeakBytes and PeakRegions are the most so far, and AverageBytes is over time, from the beginning until now: of the cache, without
	// what is lent. The most is of what was registered, not of what room was kept for.
	PeakBytes    int64
	AverageBytes float64
	PeakRegions  int
	Lent         int64 // of Bytes, for other ranks' use
	Promised     int64 // bytes that the cache may not use, because they are kept for that
	Joint        int64 // of Lent, bytes that the cache uses, too
}

// NewBudget returns a budget of so many bytes and registrations; 0 means no limit. now is the rank's clock.
func NewBudget(bytes int64, regions int, now func() time.Duration) *Budget {
	t := now()
	return &Budget{maxBytes: bytes, maxRegions: regions, now: now, began: t, since: t}
}

// Limits returns the limits; 0 is none.
func (b *Budget) Limits() (bytes int64, regions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.maxBytes, b.maxRegions
}

// SetLimits changes the limits. What is charged already stays so, even above them.
func (b *Budget) SetLimits(bytes int64, regions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.maxBytes, b.maxRegions = bytes, regions
}

// Usage returns what is charged.
func (b *Budget) Usage() Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passLocked()
	u := b.use
	u.Lent, u.Promised, u.Joint = b.lentBytes, b.promisedBytes, b.jointBytes
	u.AverageBytes = float64(u.Bytes - u.Lent)
	if t := b.since - b.began; t > 0 {
		u.AverageBytes = b.area / float64(t)
	}
	return u
}

// verdict is the answer to who wants a charge.
type verdict int

const (
	granted verdict = iota
	fullAll         // something must be given up, whoever has it
	fullOwn         // the cache has all that it may have: it must give something up itself
)

// take charges bytes and regions for the cache that are about to be registered, all or nothing: stand is called when they are, and withdraw
// if they are not after all. R6, R8.
func (b *Budget) take(bytes int64, regions int) verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.mayHaveLocked(bytes, regions):
		return fullOwn
	case !b.fitsLocked(bytes, regions):
		return fullAll
	}
	b.chargeLocked(bytes, regions)
	b.pendingBytes += bytes
	b.pendingRegions += regions
	return granted
}

// stand notes that what was taken is registered.
func (b *Budget) stand(bytes int64, regions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pendingBytes -= bytes
	b.pendingRegions -= regions
	b.use.PeakBytes = max(b.use.PeakBytes, b.use.Bytes-b.lentBytes-b.pendingBytes)
	b.use.PeakRegions = max(b.use.PeakRegions, b.use.Regions-b.lentRegions-b.pendingRegions)
	b.checkLocked()
}

// withdraw takes back what take did.
func (b *Budget) withdraw(bytes int64, regions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pendingBytes -= bytes
	b.pendingRegions -= regions
	b.chargeLocked(-bytes, -regions)
}

// mayHaveLocked reports whether the cache may have so much more, whether there is room or not.
func (b *Budget) mayHaveLocked(bytes int64, regions int) bool {
	own, ownRegions := b.use.Bytes-b.lentBytes+b.jointBytes+bytes, b.use.Regions-b.lentRegions+b.jointRegions+regions
	return (b.maxBytes == 0 || own <= b.maxBytes-b.promisedBytes) && (b.maxRegions == 0 || ownRegions <= b.maxRegions-b.promisedRegions)
}

// join charges the cache for bytes and regions that are lent, or are about to be, all or nothing; part takes that back. R8.
func (b *Budget) join(bytes int64, regions int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.mayHaveLocked(bytes, regions) {
		return false
	}
	b.jointBytes += bytes
	b.jointRegions += regions
	return true
}

func (b *Budget) part(bytes int64, regions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jointBytes -= bytes
	b.jointRegions -= regions
	b.checkLocked()
}

// lend charges bytes and regions for others, all or nothing. R6.
func (b *Budget) lend(bytes int64, regions int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.fitsLocked(bytes, regions) {
		return false
	}
	b.lendLocked(bytes, regions)
	return true
}

// give takes a charge back that stands; unlend that of others.
func (b *Budget) give(bytes int64, regions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.chargeLocked(-bytes, -regions)
}

func (b *Budget) unlend(bytes int64, regions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lendLocked(-bytes, -regions)
}

// promise keeps room for others from now on.
func (b *Budget) promise(bytes int64, regions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.promisedBytes, b.promisedRegions = bytes, regions
}

// keepsPromise reports whether the cache has as little as the promise leaves it.
func (b *Budget) keepsPromise() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mayHaveLocked(0, 0)
}

func (b *Budget) fitsLocked(bytes int64, regions int) bool {
	return (b.maxBytes == 0 || b.use.Bytes+bytes <= b.maxBytes) && (b.maxRegions == 0 || b.use.Regions+regions <= b.maxRegions)
}

// lendLocked charges what neither peak nor average count.
func (b *Budget) lendLocked(bytes int64, regions int) {
	b.passLocked()
	b.use.Bytes += bytes
	b.use.Regions += regions
	b.lentBytes += bytes
	b.lentRegions += regions
	b.checkLocked()
}

func (b *Budget) chargeLocked(bytes int64, regions int) {
	b.passLocked()
	b.use.Bytes += bytes
	b.use.Regions += regions
	b.checkLocked()
}

// checkLocked has nobody give back what he did not take.
func (b *Budget) checkLocked() {
	invariants.Check(b.lentBytes >= 0 && b.lentRegions >= 0, "others give back more registered memory than they had")
	invariants.Check(b.pendingBytes >= 0 && b.pendingRegions >= 0, "more is registered than room was taken for")
	invariants.Check(b.jointBytes >= 0 && b.jointRegions >= 0, "the cache lets go of more of others' registered memory than it used")
	invariants.Check(b.use.Bytes >= b.lentBytes && b.use.Regions >= b.lentRegions, "the cache gives back more registered memory than it had")
}

// own returns how many bytes the cache may have; 0 is no limit.
func (b *Budget) own() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.maxBytes == 0 {
		return 0
	}
	return uint64(max(1, b.maxBytes-b.promisedBytes))
}

// holds reports whether the cache could have that much if nothing else were charged.
func (b *Budget) holds(bytes int64, regions int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return (b.maxBytes == 0 || bytes <= b.maxBytes-b.promisedBytes) && (b.maxRegions == 0 || regions <= b.maxRegions-b.promisedRegions)
}

// passLocked adds the time since the last change to the average.
func (b *Budget) passLocked() {
	t := b.now()
	b.area += float64(b.use.Bytes-b.lentBytes) * float64(t-b.since)
	b.since = t
}
