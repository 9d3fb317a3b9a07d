package softnic

import (
	"fmt"
	"os"
	"sync"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// Pins are the pages that this process has locked for its software NICs. Make one with NewPins. All methods may
// be called concurrently.
type Pins struct {
	limit   int64
	setting string // the cure where the limit stands in the way
	page    uint64

	mu    sync.Mutex
	pages pages // guarded by mu
}

// NewPins returns pins that lock at most limit bytes, counted in whole pages. With a limit of 0 it is that of
// the process for locked memory (RLIMIT_MEMLOCK), whose soft value is raised to the hard one first.
func NewPins(limit int64) (*Pins, error) {
	p := &Pins{limit: limit, page: uint64(os.Getpagesize())}
	kernel, err := raiseMemlock()
	if err != nil {
		return nil, fmt.Errorf("read the limit of locked memory: %w", err)
	}
	p.setting = "the NIC's own limit, PGAS_MAX_PINNED or MaxPinned in the configuration"
	if limit <= 0 {
		p.limit = kernel
		p.setting = "ulimit -l unlimited, memlock in /etc/security/limits.conf, or LimitMEMLOCK of the service"
	}
	return p, nil
}

// Limit returns how many bytes may be locked.
func (p *Pins) Limit() int64 { return p.limit }

// Bytes returns how many bytes are locked: whole pages, each counted once.
func (p *Pins) Bytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(p.pages.locked * p.page)
}

// Lock locks the pages of r that are not locked yet and counts one more registration on each. Its error is a
// *transport.LimitError where a limit stands in the way; nothing has changed then. It may take as long as the
// system needs to bring the pages in.
func (p *Pins) Lock(r mem.Range) error {
	from, to, err := p.span(r)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.pages.locked
	edges := p.pages.change(from, to, 1)
	if after := p.pages.locked; after > uint64(p.limit)/p.page {
		p.pages.change(from, to, -1)
		return &transport.LimitError{
			What:    fmt.Sprintf("registering %s of memory", sizeOf(int64(r.Bytes))),
			Found:   fmt.Sprintf("%s of %s left", sizeOf(p.limit-int64(before*p.page)), sizeOf(p.limit)),
			Needed:  sizeOf(int64((after-before)*p.page)) + " in whole pages",
			Setting: p.setting,
		}
	}
	for i, e := range edges {
		if err := lockPages(p.cut(r, e)); err != nil {
			for _, done := range edges[:i] {
				_ = unlockPages(p.cut(r, done)) // it was locked a moment ago
			}
			needed := int64((p.pages.locked - before) * p.page)
			p.pages.change(from, to, -1)
			return p.refused(r, needed, err)
		}
	}
	return nil
}

// Unlock takes one registration, which Lock has counted, off the pages of r and unlocks those that have none
// left.
func (p *Pins) Unlock(r mem.Range) error {
	from, to, err := p.span(r)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.pages.change(from, to, -1) {
		if uerr := unlockPages(p.cut(r, e)); uerr != nil && err == nil {
			err = fmt.Errorf("unlock %d bytes at %#x: %w", r.Bytes, r.Addr(), uerr)
		}
	}
	return err
}

// span returns the pages that r lies on.
func (p *Pins) span(r mem.Range) (from, to uint64, err error) {
	end := r.Addr() + uint64(r.Bytes)
	if r.Bytes <= 0 || r.Base == nil || end < r.Addr() || end > ^uint64(0)-p.page {
		return 0, 0, fmt.Errorf("register %d bytes at %#x: no such memory", r.Bytes, r.Addr())
	}
	return r.Addr() / p.page, (end + p.page - 1) / p.page, nil
}

// cut returns the bytes of r that lie on the pages of e. The kernel takes whole pages for them; a slice that
// reached beyond r would reach into other objects.
func (p *Pins) cut(r mem.Range, e span) mem.Range {
	lo, hi := max(e.from*p.page, r.Addr()), min(e.to*p.page, r.Addr()+uint64(r.Bytes))
	return r.Slice(int(lo-r.Addr()), int(hi-lo))
}

// sizeOf writes bytes for people: "64.0 MiB".
func sizeOf(bytes int64) string {
	if bytes == noLimit {
		return "no limit"
	}
	return mem.Text(bytes)
}
