package regmgr

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/internal/predict"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// useOnce registers and releases memory that nobody else knows, and returns its shadow.
//
//go:noinline
func useOnce(t *testing.T, m *Manager) weak.Pointer[byte] {
	b := make([]byte, 1<<20)
	m.Release(acquire(t, m, mem.Of(b).Slice(1<<19, 64<<10), 0))
	m.Release(acquire(t, m, mem.Of(b).Slice(1<<19, 64<<10), 0)) // a hit leaves a hint, which must keep nothing alive
	return weak.Make(&b[0])
}

// TestIdleGoMemory (R3, R4): while it is registered the object lives though the program has dropped it, and it is given up
// after two collections without a use.
func TestIdleGoMemory(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{})
	shadow := useOnce(t, m)
	runtime.GC()
	m.Collected()
	runtime.GC()
	require.NotNil(t, shadow.Value(), "registered memory was given back")
	regions, _ := n.count()
	require.Equal(t, 1, regions)
	m.Collected()
	require.Eventually(t, func() bool { return m.Stats().Heap == 0 }, 10*time.Second, time.Millisecond) // the last that is done
	require.Equal(t, uint64(1), m.Stats().Collected)
	regions, _ = n.count()
	require.Zero(t, regions)
	require.Eventually(t, func() bool { runtime.GC(); return shadow.Value() == nil }, 10*time.Second, time.Millisecond)
}

// TestWithoutThePin: it is the pin, and nothing else, that keeps registered memory from being given back.
func TestWithoutThePin(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{NoPin: true})
	shadow := useOnce(t, m)
	require.Eventually(t, func() bool { runtime.GC(); return shadow.Value() == nil }, 10*time.Second, time.Millisecond)
	regions, _ := n.count()
	require.Equal(t, 1, regions, "the NIC still looks at pages that are somebody else's by now")
}

// TestUseBetweenCollections: what is used stays.
func TestUseBetweenCollections(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{})
	b := heap(20)
	h := acquire(t, m, b, 0)
	for range 5 {
		m.Collected() // a reference outlives any number of collections
	}
	m.Release(h)
	for range 10 {
		m.Collected()
		m.Release(acquire(t, m, b, 0))
	}
	require.Equal(t, uint64(1), m.Stats().Registrations)
}

// TestSentinel: the manager learns of real collections by itself, and does not outlive its use because of that.
func TestSentinel(t *testing.T) {
	n := newNIC()
	m, err := New(Config{Registrar: n, Sched: sched.Goroutine(2)})
	require.NoError(t, err)
	b := heap(4)
	m.Release(acquire(t, m, b, 0))
	require.Eventually(t, func() bool { runtime.GC(); r, _ := n.count(); return r == 0 }, 20*time.Second, time.Millisecond)
	seen := m.counts.collections.Load()
	require.GreaterOrEqual(t, seen, uint64(2))
	require.NoError(t, m.Close())
	runtime.KeepAlive(b)
}

func TestHeapHasALimitOfItsOwn(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{HeapBytes: 10 * page})
	a, b, large := heap(6), heap(6), heap(12)
	m.Release(acquire(t, m, a, 0))
	m.Release(acquire(t, m, b, 0))
	require.Equal(t, int64(6*page), m.Stats().Heap, "the older one went")
	h := acquire(t, m, large, 0)
	require.Equal(t, int64(18*page), m.Stats().Heap, "more than the limit: for one use")
	m.Release(h)
	require.Equal(t, int64(6*page), m.Stats().Heap, "in nobody's place")
}

// TestTheLimitIsForIdleMemoryThatStays (R4): what cannot stay takes nobody's place, and what was in use together leaves no more
// behind than may stay.
func TestTheLimitIsForIdleMemoryThatStays(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{HeapBytes: 10 * page})
	hot := heap(6)
	m.Release(acquire(t, m, hot, 0))
	h := acquire(t, m, heap(12), 0)
	m.Release(acquire(t, m, hot, 0))
	m.Release(h)
	m.Release(acquire(t, m, hot, 0))
	require.Equal(t, [2]uint64{2, 2}, [2]uint64{m.Stats().Registrations, m.Stats().Hits}, "the hot one stayed")
	a, b := acquire(t, m, heap(8), 0), acquire(t, m, heap(8), 0)
	require.Equal(t, int64(16*page), m.Stats().Heap, "both are in use")
	m.Release(a)
	require.Equal(t, int64(8*page), m.Stats().Heap)
	m.Release(b)
	require.Equal(t, int64(8*page), m.Stats().Heap)
}

// TestTheCacheHasAllOfItsLimit: without a limit of their own, regions on the Go heap share the cache's, and all that fits stays.
func TestTheCacheHasAllOfItsLimit(t *testing.T) {
	for _, p := range []Policy{LeavePinned, LeavePinnedNoEvict} {
		n := newNIC()
		m := managerOn(t, n, Config{Policy: p, Bytes: 16 * page})
		bufs := []mem.Range{heap(4), heap(4), heap(4)}
		for i := range 30 {
			m.Release(acquire(t, m, bufs[i%3], 0))
		}
		m.Release(acquire(t, m, heap(4), 0))
		s := m.Stats()
		require.Equal(t, [4]uint64{4, 27, 0, 0}, [4]uint64{s.Registrations, s.Hits, s.Evicted, s.Released}, p)
	}
	n := newNIC()
	m := managerOn(t, n, Config{Bytes: 64 * page})
	for range 8 {
		m.Release(acquire(t, m, heap(2), 0))
	}
	large := heap(40)
	for range 4 {
		m.Release(acquire(t, m, large, 0))
	}
	require.ErrorIs(t, m.Acquire(new(Hold), Request{Mem: heap(65)}), ErrCopy)
	require.ErrorIs(t, m.Refusal(), errTooLarge)
	require.NotContains(t, m.Refusal().Error(), "PGAS_REG=leavepinned", "it is in force")
	s := m.Stats()
	require.Equal(t, [4]uint64{9, 3, 0, 1}, [4]uint64{s.Registrations, s.Hits, s.Evicted, s.CopiedBudget})
}

// TestNoRoomAheadIsForThePredictor: a registration ahead of its use takes no place whose use is expected, and says so.
func TestNoRoomAheadIsForThePredictor(t *testing.T) {
	for name, c := range map[string]Config{
		"budget": {Bytes: 32 * page}, "heap": {HeapBytes: 32 * page}, "room": {Bytes: 64 * page},
	} {
		c.Policy = Predictive
		m := managerOn(t, newNIC(), c)
		bufs := []mem.Range{heap(16), heap(16), heap(16)}
		var spots [3]*spot
		for i, b := range bufs {
			spots[i] = acquireSpot(t, m, b)
		}
		for i, at := range []int64{1000, 2000} {
			require.NoError(t, m.registerAhead(spots[i]))
			m.expect(spots[i], at)
		}
		err := spotCache{m}.Register(predict.Region(spots[2].id))
		if name == "room" {
			require.NoError(t, err)
		} else {
			require.Equal(t, predict.ErrLimit, err, name)
		}
		require.True(t, m.registered(spots[0]) && m.registered(spots[1]), name)
		m.expect(spots[0], 0)
		require.NoError(t, spotCache{m}.Register(predict.Region(spots[2].id)), name)
		require.Equal(t, name == "room", m.registered(spots[0]), "nobody expects its use")
		runtime.KeepAlive(bufs)
	}
}

func mapping(t *testing.T, pages, rights int) []byte {
	b, err := unix.Mmap(-1, 0, pages*page, rights, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(b)) })
	return b
}

const readWrite = unix.PROT_READ | unix.PROT_WRITE

// TestForeignMemory (R5): registered for a use, or for a Lifetime.
func TestForeignMemory(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{})
	b := mapping(t, 8, readWrite)
	r := mem.Of(b)
	one, two, piece := acquire(t, m, r, 0), acquire(t, m, r, 0), new(Hold)
	require.Same(t, one.Region(), two.Region(), "uses at the same time share")
	require.NoError(t, m.Acquire(piece, Request{Mem: r.Slice(page, page), Of: two}))
	require.Same(t, one.Region(), piece.Region(), "it is a part of one of them")
	m.Release(one)
	m.Release(piece)
	require.True(t, n.covers(two.LKey(), r, 0))
	m.Release(two)
	regions, _ := n.count()
	require.Zero(t, regions)

	life, err := m.Keep(b[:6*page])
	require.NoError(t, err)
	m.Release(acquire(t, m, r.Slice(0, 2*page), 0))
	m.Release(acquire(t, m, r.Slice(page, 3*page), transport.LocalWrite))
	m.Release(acquire(t, m, r.Slice(5*page, 2*page), 0)) // reaches out of it
	regions, _ = n.count()
	require.Equal(t, 2, regions)
	for range 5 {
		m.Collected() // the collector has nothing to say about it
	}
	m.Release(acquire(t, m, r.Slice(0, page), 0))
	require.Equal(t, uint64(3), m.Stats().Hits, "two shared, one kept")

	_, err = m.Keep(b[5*page:])
	require.ErrorIs(t, err, ErrLifetime)
	_, err = m.Keep(heap(1).Data())
	require.ErrorIs(t, err, ErrLifetime)

	h := acquire(t, m, r.Slice(0, page), 0)
	ended := make(chan struct{})
	go func() { life.End(); close(ended) }()
	require.Eventually(t, func() bool { return len(m.cfg.Sched.Waits()) == 1 }, 10*time.Second, time.Millisecond, "End waits for the transfer")
	m.Release(h)
	<-ended
	regions, _ = n.count()
	require.Zero(t, regions)
	life.End()
	m.Release(acquire(t, m, r, 0))
	regions, _ = n.count()
	require.Zero(t, regions, "for one use again")
	life, err = m.Keep(b)
	require.NoError(t, err)
	life.End()
}

// TestLifetimeWaitsForAnyUse (R5): what was registered for one use before the lifetime began, and is used since, is waited for like what the lifetime keeps, and
// so is what reaches out of it; what lies beside it is not.
func TestLifetimeWaitsForAnyUse(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{})
	b := mapping(t, 8, readWrite)
	r := mem.Of(b)
	before, beside := acquire(t, m, r.Slice(0, 2*page), 0), acquire(t, m, r.Slice(6*page+8, page), 0)
	life, err := m.Keep(b[:6*page+8])
	require.NoError(t, err)
	since, across := acquire(t, m, r.Slice(0, 2*page), 0), acquire(t, m, r.Slice(5*page, 2*page), 0)
	require.Same(t, before.Region(), since.Region())
	m.Release(before)
	ended := make(chan struct{})
	go func() { life.End(); close(ended) }()
	for _, h := range []*Hold{since, across} {
		select {
		case <-ended:
			t.Fatal("the owner may unmap what a transfer uses")
		case <-time.After(50 * time.Millisecond):
		}
		m.Release(h)
	}
	<-ended
	regions, _ := n.count()
	require.Equal(t, 1, regions)
	m.Release(beside)
}

// TestForeignMemoryMappedAnew (R1): while a part of a mapping is used the program unmaps another one, whose use is over, and maps something else there. What was registered
// of the mapping as a whole is no registration of that.
func TestForeignMemoryMappedAnew(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{})
	r := mem.Of(mapping(t, 8, readWrite))
	whole, part := acquire(t, m, r, 0), acquire(t, m, r.Slice(page, page), 0)
	m.Release(whole)
	anew := r.Slice(4*page, 4*page)
	at, err := unix.MmapPtr(-1, 0, anew.Base, uintptr(anew.Bytes), readWrite, unix.MAP_FIXED|unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	require.Equal(t, anew.Base, at)
	made := n.made
	h := acquire(t, m, anew.Slice(page, page), 0)
	require.Equal(t, made+1, n.made)
	m.Release(h)
	m.Release(part)
}

// TestLifetimeEndsBeforeARegistrationAhead (R5): the helper has found the memory alive and makes room for it; the owner ends its
// lifetime in between, and may unmap it. Nothing is registered then, and what lies there later is registered for one use.
func TestLifetimeEndsBeforeARegistrationAhead(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{Policy: Predictive, Bytes: 8 * page})
	b := mapping(t, 4, readWrite)
	life, err := m.Keep(b)
	require.NoError(t, err)
	h := acquire(t, m, mem.Of(b), 0)
	p := h.Region().spot
	m.Release(h)
	other := heap(8)
	h = acquire(t, m, other, 0)
	q := h.Region().spot
	m.Release(h)
	require.NoError(t, m.registerAhead(q), "it fills the budget")
	ended := false
	n.ending = func() {
		n.ending = nil
		life.End()
		ended = true
	}
	require.Equal(t, errGone, m.registerAhead(p))
	require.True(t, ended, "while room was made")
	regions, _ := n.count()
	require.Zero(t, regions)
	made := n.made
	m.Release(acquire(t, m, mem.Of(b), 0))
	require.Equal(t, made+1, n.made, "for one use")
	regions, _ = n.count()
	require.Zero(t, regions)
	runtime.KeepAlive(other)
}

// TestReadOnlyMemory (R7): a source works, a destination is an error.
func TestReadOnlyMemory(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{})
	r := mem.Of(mapping(t, 4, unix.PROT_READ))
	h := acquire(t, m, r, 0)
	require.ErrorIs(t, m.Acquire(new(Hold), Request{Mem: r, Access: transport.LocalWrite}), ErrReadOnly)
	m.Release(h)
	require.Equal(t, 1, n.made, "the NIC was not even asked")
	half := mapping(t, 4, readWrite)
	require.NoError(t, unix.Mprotect(half[3*page:], unix.PROT_READ))
	require.ErrorIs(t, m.Acquire(new(Hold), Request{Mem: mem.Of(half).Slice(100, 3*page), Access: transport.LocalWrite}), ErrReadOnly)
	m.Release(acquire(t, m, mem.Of(half).Slice(100, 3*page-100), transport.LocalWrite))
	require.False(t, mapsSayWritable(r))
	require.True(t, mapsSayWritable(mem.Of(half).Slice(100, 3*page-100)))
	require.False(t, mapsSayWritable(mem.Of(half)))
}

func TestStackIsNeverRegistered(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{})
	var local [8192]byte
	err := m.Acquire(new(Hold), Request{Mem: mem.Hidden(mem.Of(local[:]))})
	require.ErrorIs(t, err, ErrCopy)
	require.Zero(t, n.made)
	require.Equal(t, uint64(1), m.Stats().CopiedOrigin)
}

// TestSpotsForgetTheDead: registering ahead finds the memory that it was told of, or says that it is gone.
func TestSpotsForgetTheDead(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{Policy: Predictive})
	b := heap(20)
	h := acquire(t, m, b, 0)
	p := h.Region().spot
	same, ok := m.spotByID(p.id)
	require.True(t, ok)
	require.Equal(t, *p, same)
	m.Release(h)
	require.False(t, m.registered(p))
	require.NoError(t, m.registerAhead(p))
	require.NoError(t, m.registerAhead(p), "it is registered already")
	require.True(t, m.registered(p))
	h = acquire(t, m, b, 0)
	require.Same(t, p, h.Region().spot)
	require.False(t, m.giveBack(p), "referenced")
	m.Release(h)
	s := m.Stats()
	require.Equal(t, [4]uint64{2, 1, 1, 2}, [4]uint64{s.Registrations, s.Ahead, s.Hits, s.Deregistrations})
	require.NoError(t, m.registerAhead(p))
	m.expect(p, 1)
	require.Same(t, p, m.idle.heap[0].spot)
	require.Equal(t, int64(1), m.idle.heap[0].expected.Load())
	require.True(t, m.giveBack(p))
	require.False(t, m.giveBack(p))
	runtime.KeepAlive(b)

	useOnce(t, m)
	var lost *spot
	for _, q := range m.spots.byID {
		if q != p {
			lost = q
		}
	}
	require.Eventually(t, func() bool { runtime.GC(); return m.registerAhead(lost) == errGone }, 10*time.Second, time.Millisecond)
	m.mu.Lock()
	m.spots.clean(m.idle.heap)
	m.mu.Unlock()
	_, ok = m.spotByID(lost.id)
	require.False(t, ok)
}
