package regmgr

import (
	"runtime"
	"weak"

	"gopgas/internal/mem"
)

// mayStay reports whether a region of so many bytes on the Go heap may stay registered when it is idle.
func (m *Manager) mayStay(bytes int64) bool { return m.cfg.HeapBytes == 0 || bytes <= m.cfg.HeapBytes }

// heapLocked takes in that a region was entered, or with bytes below zero that it was forgotten.
func (m *Manager) heapLocked(r *Region, bytes int64) {
	if r.origin != mem.Heap {
		return
	}
	m.heapBytes += bytes
	if !r.once {
		m.heapKept += bytes
	}
	m.over.Store(m.cfg.HeapBytes > 0 && m.heapKept > m.cfg.HeapBytes)
}

// heapRoom gives up idle regions on the Go heap until so many bytes more may stay beside the others; it reports whether they may.
// What is in use then stays for now: the Release that leaves it idle comes here again. ahead is as for spare.
func (m *Manager) heapRoom(bytes int64, ahead bool) bool {
	for {
		m.mu.Lock()
		fits := m.mayStay(m.heapKept + bytes)
		m.mu.Unlock()
		if fits {
			return true
		}
		if !m.evict(func(r *Region) bool { return r.origin == mem.Heap && !r.once && (!ahead || unexpected(r)) }) {
			return false
		}
	}
}

// sentinel is garbage from its birth: its cleanup tells of a collection. It holds a pointer so that the runtime does not put it
// into one block with other small objects, which would keep it.
type sentinel struct{ _ *sentinel }

// watchCollections makes m learn of each garbage collection until it is closed or garbage itself.
func watchCollections(m *Manager) {
	runtime.AddCleanup(&sentinel{}, func(w weak.Pointer[Manager]) {
		if m := w.Value(); m != nil && !m.closed.Load() {
			m.Collected()
			watchCollections(m)
		}
	}, weak.Make(m))
}

// Collected tells that a garbage collection has ended. Regions on the Go heap which were not used since two of them are
// given up by a goroutine of the rank's scheduler. It is called by the manager itself unless Config.Quiet is set.
func (m *Manager) Collected() {
	m.reaping.Add(1)
	m.mu.Lock()
	before := m.collected
	m.uses.Add(1) // so that uses before and after differ
	m.collected = m.tick()
	m.counts.collections.Add(1)
	none := m.heapBytes == 0 || before == 0
	m.mu.Unlock()
	if none || m.closed.Load() { // after reaping: either Close waits, or nothing is reaped
		m.reaping.Add(-1)
		return
	}
	m.cfg.Sched.Go(func() {
		defer m.reaping.Add(-1)
		m.reap(before)
	})
}

// reap gives up the regions on the Go heap whose last use came before that many uses: before the last collection but one.
func (m *Manager) reap(before uint64) {
	var old []*Region
	m.mu.Lock()
	for _, r := range m.idle.heap {
		if r.origin == mem.Heap && r.used() < before && r.retire() {
			old = append(old, r)
		}
	}
	for _, r := range old {
		m.idle.remove(r)
	}
	m.mu.Unlock()
	for _, r := range old {
		m.drop(r, &m.counts.collected)
	}
}
