//go:build !amd64 || race

package mem

import "sync/atomic"

// Publish stores v in w: whoever loads it sees all that this goroutine has stored before. It may be weaker than w.Store, which
// also comes before what follows.
func Publish(w *atomic.Uint64, v uint64) { w.Store(v) }

// Publish32 is Publish for a word of 4 bytes.
func Publish32(w *atomic.Uint32, v uint32) { w.Store(v) }
