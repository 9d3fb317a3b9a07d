package shm

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// Mapper is the transport.Mapper of a rank that is a process of its own. Open makes one.
type Mapper struct {
	c       Config
	machine *machine
	id      identity
	sock    uint64 // names the socket
	huge    bool
	served  atomic.Int64

	starting sync.Mutex // held while the server starts or ends; before mu
	serving  *server

	mu     sync.Mutex
	closed bool
	allocs map[uint64]*alloc   // by address
	lent   map[uint64]*alloc   // by inode, for the server
	maps   map[uint64]*mapping // by address
}

var _ transport.Mapper = (*Mapper)(nil)

// alloc is this rank's own memory.
type alloc struct {
	object
	r     mem.Range // whole pages
	bytes int       // as asked for
	ino   uint64
	nonce [16]byte
}

// mapping is a peer's memory mapped here. It holds no descriptor: the mapping alone keeps the memory.
type mapping struct {
	r     mem.Range
	bytes int
	way   Ways
}

// Open returns the mapper of this process. It reads a few files of the system and takes nothing yet. A process
// has one mapper as a rule; several do not disturb each other.
func Open(c Config) (*Mapper, error) {
	c = c.withDefaults()
	sock, err := random64()
	if err != nil {
		return nil, err
	}
	allowPeeks()
	allowPeeks()
	return &Mapper{
		c: c, machine: newMachine(c.Roots), id: readIdentity(c.Roots), sock: sock, huge: hugeAdvised(c.Roots),
		allocs: map[uint64]*alloc{}, lent: map[uint64]*alloc{}, maps: map[uint64]*mapping{},
	}, nil
}

// Name is "shm".
func (m *Mapper) Name() string { return "shm" }

// Alloc returns bytes of zeroed memory that begins on a page, all of it set aside by the kernel, and the token
// by which peers map it. It holds one descriptor until Free. Its error is a *transport.LimitError where a limit
// of the machine stands in the way; nothing is taken then.
func (m *Mapper) Alloc(bytes int) (mem.Range, transport.Token, error) {
	if bytes <= 0 || bytes > maxTokenBytes {
		return mem.Range{}, nil, fmt.Errorf("allocate %d bytes of memory for the %s: want between 1 and %d", bytes, m.c.What, int64(maxTokenBytes))
	}
	if err := m.open(); err != nil {
		return mem.Range{}, nil, err
	}
	full := wholePages(int64(bytes))
	n := need{
		what:   fmt.Sprintf("%s of shared memory for the %s", size(int64(bytes)), m.c.What),
		memory: full, file: full, address: full, maps: 1,
	}
	// The limits come first, so that one that is passed costs nothing, not even the socket.
	if err := m.machine.check(n); err != nil {
		return mem.Range{}, nil, err
	}
	ways, err := m.offer()
	if err != nil {
		return mem.Range{}, nil, err
	}
	a, err := m.newAlloc(n, bytes)
	if err != nil {
		return mem.Range{}, nil, err
	}
	t, err := m.tokenOf(a, ways)
	if err == nil {
		err = m.insert(func() { m.allocs[a.r.Addr()], m.lent[a.ino] = a, a })
	}
	if err != nil {
		return mem.Range{}, nil, errors.Join(err, a.release())
	}
	return a.r.Slice(0, bytes), t.encode(), nil
}

// newAlloc makes memory and reserves all of it.
func (m *Mapper) newAlloc(n need, bytes int) (*alloc, error) {
	id, err := random64()
	if err != nil {
		return nil, err
	}
	o, err := m.makeObject(n, id)
	if err != nil {
		return nil, err
	}
	if o.kind == kindFile {
		n.dir = o.full
	}
	a := &alloc{object: o, bytes: bytes}
	if a.r, err = mmap(o.fd, o.full); err != nil {
		if limit := m.explain(n, err); limit != nil {
			err = limit
		}
		unix.Close(o.fd)
		return nil, err
	}
	m.machine.mapped()
	if m.huge && o.full >= hugeBytes {
		_ = unix.Madvise(a.r.Data(), unix.MADV_HUGEPAGE) // advice: memory without it is as good, only slower
	}
	if err := m.reserve(n, o, a.r); err != nil {
		return nil, errors.Join(err, a.release())
	}
	return a, nil
}

// tokenOf finishes a and describes it for peers.
func (m *Mapper) tokenOf(a *alloc, ways Ways) (token, error) {
	var st unix.Stat_t
	if err := unix.Fstat(a.fd, &st); err != nil {
		return token{}, fmt.Errorf("fstat of new memory: %w", err)
	}
	if _, err := rand.Read(a.nonce[:]); err != nil {
		return token{}, fmt.Errorf("random secret: %w", err)
	}
	a.ino = st.Ino
	return token{
		kind: a.kind, ways: ways, pid: m.id.pid, fd: uint32(a.fd), dev: uint64(st.Dev), ino: a.ino, bytes: uint64(a.bytes),
		pidNS: m.id.pidNS, id: a.id, sock: m.sock, boot: m.id.boot, nonce: a.nonce,
	}, nil
}

func (a *alloc) release() error {
	return errors.Join(munmap(a.r), unix.Close(a.fd))
}

// offer returns the ways by which peers can reach this rank's memory; the first call starts the server.
func (m *Mapper) offer() (Ways, error) {
	ways := m.c.Ways & reachers
	if ways&WaySocket == 0 {
		return ways, nil
	}
	m.starting.Lock()
	defer m.starting.Unlock()
	if err := m.open(); err != nil { // Close has been here, and nobody would end a new server
		return 0, err
	}
	if m.serving != nil {
		return ways, nil
	}
	s, err := listen(m.sock, m.lend)
	if err == nil {
		m.serving = s
		return ways, nil
	}
	if ways &^= WaySocket; ways != 0 {
		return ways, nil // peers that need the socket are told that it is not offered; the next Alloc tries again
	}
	if limit := m.explain(need{what: "a socket to share the " + m.c.What}, err); limit != nil {
		return 0, limit
	}
	return 0, fmt.Errorf("share the %s: %w: %w", m.c.What, transport.ErrUnsupported, err)
}

// lend is what the server asks: a copy of the descriptor of the memory ino, if secret is its secret.
func (m *Mapper) lend(ino uint64, secret []byte) (int, byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.lent[ino]
	if a == nil || !sameSecret(a.nonce[:], secret) {
		return -1, answerGone
	}
	fd, err := unix.FcntlInt(uintptr(a.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, answerFiles
	}
	m.served.Add(1)
	return fd, answerHere
}

// Free unmaps memory that Alloc returned and forgets it; peers that have mapped it keep it. Nobody can map it
// any more.
func (m *Mapper) Free(r mem.Range) error {
	m.mu.Lock()
	a := m.allocs[r.Addr()]
	err := m.own("free", r, a != nil && a.bytes == r.Bytes)
	if err == nil {
		delete(m.allocs, r.Addr())
		delete(m.lent, a.ino)
	}
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return a.release()
}

// Map maps a peer's memory, or this rank's own a second time. It may wait for the peer's process to answer, up
// to 5 s, where /proc is refused; the peer's program takes no part. Mapping the same token twice gives two mappings.
func (m *Mapper) Map(tok transport.Token) (mem.Range, error) {
	t, err := parseToken(tok)
	if err != nil {
		return mem.Range{}, fmt.Errorf("map a peer's memory: %w", err)
	}
	if err := m.open(); err != nil {
		return mem.Range{}, err
	}
	full := wholePages(int64(t.bytes))
	what := fmt.Sprintf("%s of the %s", size(int64(t.bytes)), m.c.What)
	n := need{what: "mapping " + what + " of a peer", address: full, maps: 1}
	if err := m.machine.check(n); err != nil {
		return mem.Range{}, err
	}
	fd, way, err := m.reach(what, t)
	if err != nil {
		return mem.Range{}, err
	}
	r, err := mmap(fd, full)
	unix.Close(fd) // the mapping keeps the memory
	if err != nil {
		if limit := m.explain(n, err); limit != nil {
			err = limit
		}
		return mem.Range{}, err
	}
	m.machine.mapped()
	if m.huge && full >= hugeBytes {
		_ = unix.Madvise(r.Data(), unix.MADV_HUGEPAGE)
	}
	p := &mapping{r: r, bytes: int(t.bytes), way: way}
	if err := m.insert(func() { m.maps[r.Addr()] = p }); err != nil {
		return mem.Range{}, errors.Join(err, munmap(r))
	}
	return r.Slice(0, p.bytes), nil
}

// Unmap ends a mapping that Map returned.
func (m *Mapper) Unmap(r mem.Range) error {
	m.mu.Lock()
	p := m.maps[r.Addr()]
	err := m.own("unmap", r, p != nil && p.bytes == r.Bytes)
	if err == nil {
		delete(m.maps, r.Addr())
	}
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return munmap(p.r)
}

// Close frees and unmaps everything and ends the server. All later calls fail with ErrClosed, Close too.
func (m *Mapper) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return m.errClosed()
	}
	m.closed = true
	allocs, maps := m.allocs, m.maps
	m.allocs, m.lent, m.maps = nil, nil, nil
	m.mu.Unlock()

	m.starting.Lock()
	if m.serving != nil {
		m.serving.close()
		m.serving = nil
	}
	m.starting.Unlock()
	var errs []error
	for _, a := range allocs {
		errs = append(errs, a.release())
	}
	for _, p := range maps {
		errs = append(errs, munmap(p.r))
	}
	return errors.Join(errs...)
}

// Stats says what is held now.
func (m *Mapper) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Stats{Allocs: len(m.allocs), Maps: len(m.maps), Served: m.served.Load()}
	for _, a := range m.allocs {
		s.AllocBytes += a.full
		if a.kind == kindMemfd {
			s.ByMemfd++
		} else {
			s.ByFile++
		}
	}
	for _, p := range m.maps {
		s.MapBytes += int64(p.r.Bytes)
		if p.way == WayProc {
			s.ByProc++
		} else {
			s.BySocket++
		}
	}
	return s
}

func (m *Mapper) open() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return m.errClosed()
	}
	return nil
}

// insert runs add under the lock, unless the mapper was closed meanwhile.
func (m *Mapper) insert(add func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return m.errClosed()
	}
	add()
	return nil
}

// own returns an error unless the mapper is open and found is set; the caller holds mu.
func (m *Mapper) own(what string, r mem.Range, found bool) error {
	if m.closed {
		return m.errClosed()
	}
	if !found {
		return errNotHeld(what, r)
	}
	return nil
}

func (m *Mapper) errClosed() error {
	return fmt.Errorf("memory of the %s: %w", m.c.What, transport.ErrClosed)
}

func random64() (uint64, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, fmt.Errorf("random name: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}
