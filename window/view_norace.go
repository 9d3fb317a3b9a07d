//go:build !race

package window

// Load returns element i. A loop that waits for another rank's store uses Atomics, or a signal.
func (v View[T]) Load(i int) T { return v.p.s[i] }

// Store sets element i. Stores through views and puts by one goroutine become visible in order after Order.
func (v View[T]) Store(i int, x T) { v.p.s[i] = x }
