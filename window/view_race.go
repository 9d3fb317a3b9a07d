//go:build race

package window

// Load returns element i. Elements of 4 and 8 bytes are loaded atomically, as the processor does it in any case:
// the race detector then reports what no synchronisation orders, and not the flag that is the synchronisation.
func (v View[T]) Load(i int) T { return load(&v.p.s[i]) }

// Store sets element i, atomically where Load is atomic.
func (v View[T]) Store(i int, x T) { store(&v.p.s[i], x) }
