package regmgr

import (
	"sync"
	"time"
)

// Budget is how much memory a rank may have registered at once, and how much it has. Make one with NewBudget; all
// methods may be called by any goroutine and none waits.
type Budget struct {
	mu         sync.Mutex
	maxBytes   int64 // 0: no limit
	maxRegions int
	now        func() time.Duration
	use        Usage
	area       float64 // byte-nanoseconds, up to since
	began      time.Duration
	since      time.Duration
}

// Usage is what is charged to a Budget.
type Usage struct {
	Bytes, PeakBytes int64   // now, and at most so far
	AverageBytes     float64 // over time, from the beginning until now
	Regions          int     // registrations now
	PeakRegions      int
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
	u.AverageBytes = float64(u.Bytes)
	if t := b.since - b.began; t > 0 {
		u.AverageBytes = b.area / float64(t)
	}
	return u
}

// take charges bytes and regions, all or nothing. R6.
func (b *Budget) take(bytes int64, regions int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.maxBytes > 0 && b.use.Bytes+bytes > b.maxBytes || b.maxRegions > 0 && b.use.Regions+regions > b.maxRegions {
		return false
	}
	b.passLocked()
	b.use.Bytes += bytes
	b.use.Regions += regions
	b.use.PeakBytes = max(b.use.PeakBytes, b.use.Bytes)
	b.use.PeakRegions = max(b.use.PeakRegions, b.use.Regions)
	return true
}

// give takes a charge back.
func (b *Budget) give(bytes int64, regions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passLocked()
	b.use.Bytes -= bytes
	b.use.Regions -= regions
}

// holds reports whether that much could be had if nothing else were charged.
func (b *Budget) holds(bytes int64, regions int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return (b.maxBytes == 0 || bytes <= b.maxBytes) && (b.maxRegions == 0 || regions <= b.maxRegions)
}

// passLocked adds the time since the last change to the average.
func (b *Budget) passLocked() {
	t := b.now()
	b.area += float64(b.use.Bytes) * float64(t-b.since)
	b.since = t
}
