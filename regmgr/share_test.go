package regmgr

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// lender keeps registrations for others as firehose does: some in use, and victims, the oldest first.
type lender struct {
	m       *Manager
	mu      sync.Mutex
	victims []lent
}

type lent struct {
	key   transport.Region
	mem   mem.Range
	since uint64
}

func (l *lender) Oldest() (uint64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.victims) == 0 {
		return 0, false
	}
	return l.victims[0].since, true
}

func (l *lender) Shed(bytes int64) (freed int64) {
	for freed < bytes {
		l.mu.Lock()
		if len(l.victims) == 0 {
			l.mu.Unlock()
			break
		}
		v := l.victims[0]
		l.victims = l.victims[1:]
		l.mu.Unlock()
		_ = l.m.Return(v.key, v.mem)
		freed += int64(v.mem.Bytes)
	}
	return freed
}

// idle registers pages for others and lets go of them at once.
func (l *lender) idle(t *testing.T, pages int) {
	t.Helper()
	r := heap(pages)
	key, err := l.m.Lend(r, transport.AllAccess)
	require.NoError(t, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.victims = append(l.victims, lent{key, r, l.m.Uses()})
}

func lenderOn(t *testing.T, n *nic, c Config) (*Manager, *lender) {
	m := managerOn(t, n, c)
	l := &lender{m: m}
	m.Share(l)
	t.Cleanup(func() { l.Shed(1 << 40) })
	return m, l
}

// TestTheOldestGoes: idle regions and victims share one budget and give way to each other, those first that were not used
// for the longest time.
func TestTheOldestGoes(t *testing.T) {
	n := newNIC()
	m, l := lenderOn(t, n, Config{Bytes: 12 * page})
	a, b := heap(4), heap(4)
	m.Release(acquire(t, m, a, 0))
	l.idle(t, 4)
	m.Release(acquire(t, m, b, 0)) // from the oldest: a, the victim, b
	l.idle(t, 3)
	require.Nil(t, m.index.find(a.Addr(), a.Addr()+1, 0), "a went for the second victim")
	require.Len(t, l.victims, 2)
	c := heap(4)
	m.Release(acquire(t, m, c, 0))
	require.Len(t, l.victims, 1, "the first victim went for c")
	m.Release(acquire(t, m, b, 0)) // younger than all now
	d := heap(8)
	h := acquire(t, m, d, 0)
	require.Empty(t, l.victims, "the second victim went, and c")
	require.Nil(t, m.index.find(c.Addr(), c.Addr()+1, 0))
	require.NotNil(t, m.index.find(b.Addr(), b.Addr()+1, 0))
	s := m.Stats()
	require.Equal(t, [3]uint64{2, 2, 1}, [3]uint64{s.Evicted, s.Shed, s.Hits})
	require.Zero(t, s.Lent)
	m.Release(h)
}

// TestPromise: what is kept for others is theirs whatever the cache refers to.
func TestPromise(t *testing.T) {
	n := newNIC()
	m, l := lenderOn(t, n, Config{Bytes: 12 * page, Regions: 6})
	m.Release(acquire(t, m, heap(6), 0))
	m.Release(acquire(t, m, heap(4), 0))
	m.Promise(8*page, 4)
	m.KeepPromise()
	require.EqualValues(t, 4*page, m.Stats().Bytes, "the older one went at once")
	used := []*Hold{acquire(t, m, heap(2), 0), acquire(t, m, heap(2), 0)}
	require.ErrorIs(t, m.Acquire(new(Hold), Request{Mem: heap(1)}), ErrCopy, "8 pages are free, and kept")
	l.idle(t, 8)
	require.ErrorIs(t, m.Acquire(new(Hold), Request{Mem: heap(1)}), ErrCopy, "victims are no room for the cache beyond its part")
	require.Len(t, l.victims, 1)
	require.EqualValues(t, 12*page, m.Stats().Bytes)
	m.Promise(0, 0)
	used = append(used, acquire(t, m, heap(1), 0))
	require.Empty(t, l.victims, "now they are")
	for _, h := range used {
		m.Release(h)
	}
}

// TestLendWhereTheNICRefuses: the NIC's limit is lower than the budget. Idle memory goes for a loan, and no more of it than
// could help.
func TestLendWhereTheNICRefuses(t *testing.T) {
	n := newNIC()
	n.limit = 8 * page
	m, l := lenderOn(t, n, Config{Bytes: 64 * page})
	for range 4 {
		m.Release(acquire(t, m, heap(2), 0))
	}
	l.idle(t, 3)
	require.EqualValues(t, 7*page, m.Stats().Bytes)
	n.limit = 1
	_, err := m.Lend(heap(2), transport.AllAccess)
	require.ErrorIs(t, err, transport.ErrLimit)
	require.EqualValues(t, 5*page, m.Stats().Bytes, "as many bytes went as were asked for")
}

// TestNoRoomForALoan: the error says how much there is of what, and of a loan that no budget of this size could take, which size would do.
func TestNoRoomForALoan(t *testing.T) {
	m, _ := lenderOn(t, newNIC(), Config{Bytes: 4 * page})
	_, err := m.Lend(heap(8), transport.AllAccess)
	require.ErrorIs(t, err, transport.ErrLimit)
	require.ErrorContains(t, err, "found 0 bytes in 0 registrations in use, limit 16384 bytes")
	require.ErrorContains(t, err, "PGAS_REG_LIMIT and PGAS_MAX_PINNED (32768 bytes or more)")
	h := acquire(t, m, heap(3), 0)
	_, err = m.Lend(heap(2), transport.AllAccess)
	require.ErrorContains(t, err, "found 12288 bytes in 1 registrations in use")
	require.ErrorContains(t, err, "needed 8192 bytes in 1 registration more; to change it: PGAS_REG_LIMIT and the limit")
	m.Release(h)
}

// TestManyShare: uses and loans of random sizes by many goroutines. The budget holds at any time, and nothing is lost.
func TestManyShare(t *testing.T) {
	n := newNIC()
	m, l := lenderOn(t, n, Config{Bytes: 24 * page})
	m.Promise(12*page, 0)
	var bufs []mem.Range
	for range 8 {
		bufs = append(bufs, heap(4))
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 4))
			var mine []lent
			for range 500 {
				if g < 2 {
					var h Hold
					b := bufs[rng.IntN(len(bufs))].Slice(0, (1+rng.IntN(4))*page)
					if err := m.Acquire(&h, Request{Mem: b}); err == nil {
						if !n.covers(h.LKey(), b, 0) {
							t.Error("held, but not registered")
						}
						m.Release(&h)
					}
					continue
				}
				if len(mine) > 1 || len(mine) > 0 && rng.IntN(2) == 0 {
					l.mu.Lock()
					v := mine[0]
					v.since = m.Uses()
					l.victims = append(l.victims, v)
					l.mu.Unlock()
					mine = mine[1:]
					continue
				}
				r := heap(3)
				key, err := m.Lend(r, transport.AllAccess)
				if err != nil {
					t.Errorf("12 pages are promised, 2 ranks of 2 loans of 3 pages ask: %v", err)
					continue
				}
				mine = append(mine, lent{key: key, mem: r})
			}
			for _, v := range mine {
				_ = m.Return(v.key, v.mem)
			}
		})
	}
	wg.Wait()
	l.Shed(1 << 40)
	regions, bytes := n.count()
	u := m.Budget().Usage()
	require.Equal(t, bytes, u.Bytes)
	require.Equal(t, regions, u.Regions)
	require.Zero(t, u.Lent)
	require.LessOrEqual(t, n.peak, int64(24*page), "R6")
	require.LessOrEqual(t, u.PeakBytes, int64(24*page), "the cache's alone")
	runtime.KeepAlive(bufs)
}
