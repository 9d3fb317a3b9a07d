package regmgr

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// nic is a NIC that registers: it keeps the account that the manager must not falsify, and refuses as it is told.
type nic struct {
	mu       sync.Mutex
	live     map[uint64]extent // by address: it keeps no Go object alive
	rights   map[uint64]transport.Access
	next     uint64
	made     int
	bytes    int64
	peak     int64             // of bytes
	limit    int64             // 0: none
	refuse   func(n int) error // asked at the n'th registration
	during   func()            // called in every registration, outside of the lock
	ending   func()            // and in every deregistration
	stubborn bool              // nothing can be deregistered
}

func newNIC() *nic {
	return &nic{live: make(map[uint64]extent), rights: make(map[uint64]transport.Access)}
}

const page = 4096

// extent is registered memory.
type extent struct{ lo, hi uint64 }

func extentOf(r mem.Range) extent { return extent{r.Addr(), r.Addr() + uint64(r.Bytes)} }

func (e extent) charge() int64 { return int64((e.hi+page-1)/page-e.lo/page) * page }

func (n *nic) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	if n.during != nil {
		n.during()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made++
	if n.refuse != nil {
		if err := n.refuse(n.made); err != nil {
			return transport.Region{}, err
		}
	}
	if n.limit > 0 && n.bytes+extentOf(r).charge() > n.limit {
		return transport.Region{}, &transport.LimitError{What: "a registration", Found: fmt.Sprint(n.limit - n.bytes), Needed: fmt.Sprint(extentOf(r).charge()), Setting: "the test"}
	}
	n.next++
	n.bytes += extentOf(r).charge()
	n.peak = max(n.peak, n.bytes)
	n.live[n.next], n.rights[n.next] = extentOf(r), a
	return transport.Region{ID: n.next, LKey: n.next}, nil
}

func (n *nic) Deregister(r transport.Region) error {
	if n.ending != nil {
		n.ending()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	m, ok := n.live[r.ID]
	if !ok {
		return fmt.Errorf("region %d is not registered", r.ID)
	}
	if n.stubborn {
		return fmt.Errorf("region %d stays", r.ID)
	}
	n.bytes -= m.charge()
	delete(n.live, r.ID)
	return nil
}

// covers reports whether key names a registration of all of r with the rights.
func (n *nic) covers(key uint64, r mem.Range, a transport.Access) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	m, ok := n.live[key]
	return ok && r.Addr() >= m.lo && r.Addr()+uint64(r.Bytes) <= m.hi && n.rights[key]&a == a
}

func (n *nic) count() (regions int, bytes int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.live), n.bytes
}

// managerOn returns a manager, and checks at the end that it gives everything back.
func managerOn(tb testing.TB, n *nic, c Config) *Manager {
	tb.Helper()
	c.Registrar, c.Sched, c.Quiet = n, sched.Goroutine(2), true
	m, err := New(c)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		if n.stubborn {
			return
		}
		require.NoError(tb, m.Close())
		regions, _ := n.count()
		require.Zero(tb, regions, "registrations left")
		u := m.Budget().Usage()
		require.Zero(tb, u.Bytes)
		require.Zero(tb, u.Regions)
	})
	return m
}

// heap returns memory of the Go heap that begins on a page.
func heap(pages int) mem.Range {
	keep := make([]byte, max(pages, 16)*page) // large objects lie on page boundaries
	return mem.Of(keep).Slice(0, pages*page)
}

func acquire(tb testing.TB, m *Manager, r mem.Range, a transport.Access) *Hold {
	tb.Helper()
	h := new(Hold)
	require.NoError(tb, m.Acquire(h, Request{Mem: r, Access: a}))
	return h
}
