package shm

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"gopgas/internal/mem"
	"gopgas/internal/touch"
	"gopgas/transport"
)

// Local is the transport.Mapper of a rank that is a goroutine of this process, beside the others of its group.
// Memory comes from the Go heap, where the race detector sees it, but with Config.Twice, and Map returns the very memory that Alloc
// did. NewGroup makes them.
type Local struct {
	t      *table
	closed bool                // guarded by t.mu
	allocs map[uint64]*shared  // by address; guarded by t.mu
	maps   map[uint64]*holding // by address; guarded by t.mu
}

var _ transport.Mapper = (*Local)(nil)

// table is what the mappers of a group share.
type table struct {
	c       Config
	machine *machine
	group   uint32

	mu   sync.Mutex
	next uint64
	byID map[uint64]*shared // that can be mapped: allocated and not yet freed
}

// shared is memory of one rank. The collector takes it when no mapper of the group and no user has it, or, with Config.Twice,
// the last mapper of the group that gives it back.
type shared struct {
	r     mem.Range
	id    uint64
	users int          // mappers that hold it; guarded by table.mu
	free  func() error // nil: the collector's
}

// drop gives memory back for one mapper. The caller holds table.mu.
func (s *shared) drop() error {
	if s.users--; s.users > 0 || s.free == nil {
		return nil
	}
	return s.free()
}

// holding is what one mapper has mapped, times times.
type holding struct {
	*shared
	times int
}

// NewGroup returns the mappers of n ranks of this process, which map each other's memory and nobody else's.
// It panics with a negative n.
func NewGroup(n int, c Config) []*Local {
	c = c.withDefaults()
	var group [4]byte
	_, _ = rand.Read(group[:]) // crypto/rand does not fail; zero would do, but not tell groups apart
	t := &table{c: c, machine: newMachine(c.Roots), group: binary.LittleEndian.Uint32(group[:]), byID: map[uint64]*shared{}}
	all := make([]*Local, n)
	for i := range all {
		all[i] = &Local{t: t, allocs: map[uint64]*shared{}, maps: map[uint64]*holding{}}
	}
	return all
}

// Name is "shm".
func (l *Local) Name() string { return "shm" }

// Alloc returns zeroed memory of the Go heap that begins on a page. Its error is a *transport.LimitError where
// the machine cannot hold it.
func (l *Local) Alloc(bytes int) (mem.Range, transport.Token, error) {
	page := os.Getpagesize()
	if bytes <= 0 || bytes > maxTokenBytes {
		return mem.Range{}, nil, fmt.Errorf("allocate %d bytes of memory for the %s: want between 1 and %d", bytes, l.t.c.What, int64(maxTokenBytes))
	}
	if err := l.open(); err != nil {
		return mem.Range{}, nil, err
	}
	if err := l.t.machine.check(heapNeed(l.t.c.What, bytes, page)); err != nil {
		return mem.Range{}, nil, err
	}
	s := l.t.make(bytes, page)

	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	if l.closed {
		return mem.Range{}, nil, errors.Join(l.errClosed(), s.drop())
	}
	l.t.next++
	s.id = l.t.next
	r := s.r
	l.t.byID[s.id] = s
	l.allocs[r.Addr()] = s
	return r, heapToken{group: l.t.group, id: s.id}.encode(), nil
}

// make makes memory that one mapper holds.
func (t *table) make(bytes, page int) *shared {
	if t.c.Twice {
		if r, free, err := touch.Alloc(bytes); err == nil {
			return &shared{r: r, users: 1, free: free}
		}
	}
	r := mem.Of(make([]byte, bytes+page))
	return &shared{r: r.Slice(int(-r.Addr()&uint64(page-1)), bytes), users: 1}
}

// Free forgets memory that Alloc returned. It stays valid for ranks that have mapped it; nobody can map it any
// more.
func (l *Local) Free(r mem.Range) error {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	if l.closed {
		return l.errClosed()
	}
	s := l.allocs[r.Addr()]
	if s == nil || s.r.Bytes != r.Bytes {
		return errNotHeld("free", r)
	}
	delete(l.allocs, r.Addr())
	delete(l.t.byID, s.id)
	return s.drop()
}

// Map returns the memory of a rank of the same group.
func (l *Local) Map(tok transport.Token) (mem.Range, error) {
	t, err := parseHeapToken(tok)
	if err != nil {
		return mem.Range{}, fmt.Errorf("map a peer's memory: %w", err)
	}
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	if l.closed {
		return mem.Range{}, l.errClosed()
	}
	if t.group != l.t.group {
		return mem.Range{}, fmt.Errorf("map a peer's memory: %w: it belongs to another group of goroutine ranks", transport.ErrUnsupported)
	}
	s := l.t.byID[t.id]
	if s == nil {
		return mem.Range{}, fmt.Errorf("map a peer's memory: %w: heap: memory %d is freed", transport.ErrUnsupported, t.id)
	}
	h := l.maps[s.r.Addr()]
	if h == nil {
		h = &holding{shared: s}
		s.users++
		l.maps[s.r.Addr()] = h
	}
	h.times++
	return s.r, nil
}

// Unmap gives back what Map returned, as often as it returned it.
func (l *Local) Unmap(r mem.Range) error {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	if l.closed {
		return l.errClosed()
	}
	h := l.maps[r.Addr()]
	if h == nil || h.r.Bytes != r.Bytes {
		return errNotHeld("unmap", r)
	}
	if h.times--; h.times > 0 {
		return nil
	}
	delete(l.maps, r.Addr())
	return h.drop()
}

// Close frees and unmaps everything of this rank. All its later calls fail with ErrClosed, Close too.
func (l *Local) Close() error {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	if l.closed {
		return l.errClosed()
	}
	l.closed = true
	var errs []error
	for _, s := range l.allocs {
		delete(l.t.byID, s.id)
		errs = append(errs, s.drop())
	}
	for _, h := range l.maps {
		errs = append(errs, h.drop())
	}
	l.allocs, l.maps = nil, nil
	return errors.Join(errs...)
}

// Stats says what this rank holds now. Memory of the Go heap is neither a memfd nor a file, and mapping it goes
// by none of the ways.
func (l *Local) Stats() Stats {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	var s Stats
	for _, a := range l.allocs {
		s.Allocs++
		s.AllocBytes += int64(a.r.Bytes)
	}
	for _, h := range l.maps {
		s.Maps += h.times
		s.MapBytes += int64(h.r.Bytes)
	}
	return s
}

func (l *Local) open() error {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	if l.closed {
		return l.errClosed()
	}
	return nil
}

func (l *Local) errClosed() error {
	return fmt.Errorf("memory of the %s: %w", l.t.c.What, transport.ErrClosed)
}

// errNotHeld is the error of Free and Unmap for memory that is not the mapper's.
func errNotHeld(what string, r mem.Range) error {
	return fmt.Errorf("%s %d bytes at %#x: not memory that this mapper holds, or given back already", what, r.Bytes, r.Addr())
}
