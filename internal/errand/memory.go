package errand

import (
	"sync"

	"gopgas/internal/mem"
)

// Memories are what this rank has exposed, by key. The zero Memories are none. Any goroutine may use them at any time.
type Memories struct {
	mu    sync.RWMutex
	byKey map[uint64]mem.Range
}

// Know makes memory reachable for errands.
func (m *Memories) Know(key uint64, r mem.Range) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey == nil {
		m.byKey = make(map[uint64]mem.Range)
	}
	m.byKey[key] = r
}

// Forget ends what Know began. It waits for errands that are being done.
func (m *Memories) Forget(key uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}

// Hold returns the memory of a key. Until Release is called, which it must be in any case, that is not forgotten.
func (m *Memories) Hold(key uint64) (whole mem.Range, ok bool) {
	m.mu.RLock()
	whole, ok = m.byKey[key]
	return whole, ok
}

// Release ends a Hold.
func (m *Memories) Release() { m.mu.RUnlock() }

// Within returns the n bytes at address addr of whole; ok is false where they are not all inside.
func Within(whole mem.Range, addr uint64, n int) (part mem.Range, ok bool) {
	off := addr - whole.Addr()
	if n < 0 || addr < whole.Addr() || off > uint64(whole.Bytes) || n > whole.Bytes-int(off) {
		return mem.Range{}, false
	}
	return whole.Slice(int(off), n), true
}

// Store writes src to exposed memory, a word as one: whoever polls it sees the old value or the new one.
func Store(dst, src mem.Range) {
	if dst.Bytes == 8 && dst.Addr()%8 == 0 {
		dst.Word64(0).Store(src.Bits())
		return
	}
	mem.Copy(dst.Data(), src.Data())
}

// Load reads exposed memory, a word as one.
func Load(dst, src mem.Range) {
	if src.Bytes == 8 && src.Addr()%8 == 0 {
		dst.SetBits(src.Word64(0).Load())
		return
	}
	mem.Copy(dst.Data(), src.Data())
}
