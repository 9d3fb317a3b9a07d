package proto

import (
	"sync/atomic"

	"gopgas/firehose"
)

// Path is how an operation travelled.
type Path int

// The paths. Mapped moves bytes with the CPU; the others use a NIC.
const (
	PathMapped Path = iota
	PathAtomic
	PathInline
	PathBounce
	PathNICAtomic
	PathMessage
	PathDirect // from or to the user's own memory
	PathBypass // the same, of a small transfer: its buffer is used often
	PathPipe   // through slots, in chunks
	numPaths
)

// String names the path as statistics do.
func (p Path) String() string {
	return [...]string{"mapped", "atomic", "inline", "bounce", "atomic", "message", "zero-copy", "bypass", "superpipe"}[p]
}

// OverNIC reports whether the path uses the NIC.
func (p Path) OverNIC() bool { return p >= PathInline }

// Count is what travelled on one path.
type Count struct{ Ops, Bytes, Waits uint64 }

// counters are a rank's totals by path.
type counters [numPaths]struct{ ops, bytes, waits atomic.Uint64 }

func (c *counters) add(p Path, bytes int) {
	c[p].ops.Add(1)
	c[p].bytes.Add(uint64(bytes))
}

func (c *counters) waited(p Path) { c[p].waits.Add(1) }

// Stats returns the totals by path.
func (e *Engine) Stats() map[Path]Count {
	out := make(map[Path]Count)
	for p := range numPaths {
		c := &e.counts[p]
		if n := (Count{c.ops.Load(), c.bytes.Load(), c.waits.Load()}); n != (Count{}) {
			out[p] = n
		}
	}
	return out
}

// Firehoses returns what this rank's requests for other ranks' buckets met, and what it did for theirs. Both are zero
// where the NIC registers everything as a whole.
func (e *Engine) Firehoses() (origin firehose.HolderStats, target firehose.ServerStats) {
	n := e.nic()
	if n == nil || n.hoses == nil {
		return origin, target
	}
	n.mu.Lock()
	origin = n.hoses.holder.Stats()
	n.mu.Unlock()
	return origin, n.hoses.server.Stats()
}
