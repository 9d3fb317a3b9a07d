package hose

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/regmgr"
	"gopgas/transport"
)

const (
	exposed = 8 << 20 // of rank 1, which may register half of that
	budget  = 4 << 20
	pieces  = 8
)

// pair is two ranks, and the memory of rank 1 as rank 0 sees it.
type pair struct {
	set  [2]*Set
	nic  [2]*nic
	regs [2]*regmgr.Manager
	mem  mem.Range
	id   uint32
	far  *Far
}

// nic is a rank's NIC. A message arrives at once, where the test does not prevent it.
type nic struct {
	t       testing.TB
	p       *pair
	rank    int
	lock    sync.Mutex
	gone    error // of the other rank
	refuse  error // of messages
	full    int   // so many messages find no room first
	sent    [Kinds]int
	storing func() // is called before a put is stored

	mu    sync.Mutex           // of what follows
	live  map[uint64]mem.Range // by registration
	next  uint64
	peak  int  // most bytes registered at once, in whole pages
	many  bool // goroutines use the ranks at once, so a lock that is held says nothing
	woken int
	model cost.Model
	modal int // how often it was asked
}

func newPair(t testing.TB) *pair { return newPairOf(t, regmgr.Config{Policy: regmgr.LeavePinned}) }

// newPairOf is newPair with registrations as c says.
func newPairOf(t testing.TB, c regmgr.Config) *pair {
	if c.Bytes == 0 {
		c.Bytes = budget
	}
	p := &pair{mem: mem.Of(make([]uint64, exposed/8))}
	if c.Ahead != nil { // the helper foresees uses of Go memory when it is not exposed any more, too, and so registers it
		p.mem = mapping(t, exposed)
	}
	for r := range p.set {
		n := &nic{ // with a helper, that one takes the lock, too
			t: t, p: p, rank: r, live: make(map[uint64]mem.Range), many: c.Ahead != nil,
			model: cost.Model{PageBytes: 4096, Register: cost.Line{A: 200, B: 3000}, Deregister: cost.Line{A: 100, B: 1000}},
		}
		s := sched.Goroutine(2)
		c.Registrar, c.Sched, c.Threshold = n, s, 1<<16
		m, err := regmgr.New(c)
		require.NoError(t, err)
		set, err := New(Config{
			Size: 2, Bytes: c.Bytes, Payload: 4096, Pieces: pieces, Sched: s, Registered: m, Lock: &n.lock, NIC: n, Unanswered: errLost,
		})
		require.NoError(t, err)
		p.set[r], p.nic[r], p.regs[r] = set, n, m
	}
	var err error
	p.id, err = p.set[1].Expose(p.mem)
	require.NoError(t, err)
	p.far = NewFar(1, p.id, p.mem.Addr(), exposed)
	require.NoError(t, p.set[0].Agree([]uint64{p.set[0].Hash(), p.set[1].Hash()}))
	return p
}

// mapping is memory of n bytes that is none of Go's.
func mapping(t testing.TB, n int) mem.Range {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(b)) })
	return mem.Of(b)
}

var errLost = errors.New("the connection broke")

// end frees the memory, and sees that nothing of it is left.
func (p *pair) end(t testing.TB) {
	require.NoError(t, p.set[0].Leave(t.Context(), []*Far{p.far}))
	p.set[0].Progress()
	require.NoError(t, p.set[1].Withdraw(t.Context(), p.id))
	require.Empty(t, p.nic[1].live, "E5")
	s := p.regs[1].Stats()
	require.Zero(t, s.Lent)
	require.Zero(t, s.Promised)
	for _, m := range p.regs {
		require.NoError(t, m.Close())
		m.Forget()
	}
}

// addr is the address of a byte of the memory.
func (p *pair) addr(off int) uint64 { return p.mem.Addr() + uint64(off) }

// try is a hit of piece 0, or none.
func (p *pair) try(off, bytes int) bool {
	p.nic[0].lock.Lock()
	defer p.nic[0].lock.Unlock()
	_, ok := p.set[0].TryLocked(0, p.far, p.addr(off), bytes)
	if ok {
		p.set[0].NoteLocked(0, p.far, false)
		p.set[0].ReleaseLocked(0)
	}
	return ok
}

func (p *pair) release(id int32) {
	p.nic[0].lock.Lock()
	defer p.nic[0].lock.Unlock()
	p.set[0].ReleaseLocked(id)
}

func (n *nic) Gone(int) error { return n.gone }
func (n *nic) Parted() bool   { return false }

func (n *nic) WaitUntil(ctx context.Context, _ string, rank int, cond func() bool) error {
	began := time.Now()
	for i := 0; i < 1000 || n.many && time.Since(began) < 20*time.Second; i++ {
		if cond() {
			return nil
		}
		if n.many {
			runtime.Gosched() // what it waits for another goroutine may have to do
		}
		if n.gone != nil && rank >= 0 {
			return n.gone
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, s := range n.p.set {
			s.Progress()
		}
	}
	n.t.Error("it waits for ever")
	return errLost
}

// free fails the test if a rank's lock is held (E1).
func (n *nic) free() {
	if n.many {
		return
	}
	for _, o := range n.p.nic {
		require.True(n.t, o.lock.TryLock(), "E1")
		o.lock.Unlock()
	}
}

func (n *nic) Send(rank int, k Kind, body []byte, cookie uint64) (bool, error) {
	n.free()
	require.NotZero(n.t, cookie&Cookie)
	switch {
	case n.gone != nil:
		return true, nil
	case n.full > 0:
		n.full--
		return false, nil
	case n.refuse != nil:
		return false, n.refuse
	}
	n.mu.Lock()
	n.sent[k]++
	n.mu.Unlock()
	out := make([]byte, 4096)
	size, ok := n.p.set[rank].Handle(k, n.rank, body, out)
	require.True(n.t, ok)
	n.p.set[n.rank].Answered(cookie, 0, out[:size], nil)
	return true, nil
}

func (n *nic) Drop(int) []uint64 { return nil }

func (n *nic) Wake() {
	n.mu.Lock()
	n.woken++
	n.mu.Unlock()
}

func (n *nic) Store(dst, src mem.Range) {
	if n.storing != nil {
		n.storing()
	}
	copy(dst.Data(), src.Data())
}

func (n *nic) Model() (cost.Model, error) {
	n.modal++
	return n.model, nil
}

func (n *nic) Register(r mem.Range, _ transport.Access) (transport.Region, error) {
	n.free()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next++
	n.live[n.next] = r
	n.peak = max(n.peak, n.bytesLocked())
	return transport.Region{ID: n.next, RKey: 1000 + n.next, LKey: 1 << 32 * n.next}, nil
}

// bytesLocked is how much is registered, in whole pages.
func (n *nic) bytesLocked() (sum int) {
	for _, r := range n.live {
		sum += mem.Pages(r, 4096) * 4096
	}
	return sum
}

// registered is how much, and in how many registrations.
func (n *nic) registered() (bytes, registrations int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bytesLocked(), len(n.live)
}

func (n *nic) Deregister(r transport.Region) error {
	n.free()
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.live, r.ID)
	return nil
}
