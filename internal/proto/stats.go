package proto

import (
	"sync/atomic"

	"gopgas/firehose"
	"gopgas/internal/nic"
)

// Path is how an operation travelled.
type Path int

// The paths. Mapped moves bytes with the CPU; the others use a NIC.
const (
	PathMapped Path = iota
	PathAtomic
	PathKernel // of a rank of the node, of memory that is not mapped, by a copy of the kernel's
	PathInline
	PathBounce
	PathNICAtomic
	PathMessage
	PathDirect // from or to the user's own memory
	PathBypass // the same, of a small transfer: its buffer is used often
	PathPipe   // through slots, in chunks
	PathLease  // through slots at both ends: neither the user's memory nor the target's is registered
	PathGather // messages whose payload the NIC takes from the user's memory, behind a header
	numPaths
)

// String names the path as statistics do.
func (p Path) String() string {
	return [...]string{"mapped", "atomic", "kernel", "inline", "bounce", "atomic", "message", "zero-copy", "bypass", "superpipe", "lease", "gather"}[p]
}

// OverNIC reports whether the path uses the NIC.
func (p Path) OverNIC() bool { return p >= PathInline }

// Count is what travelled on one path.
type Count struct{ Ops, Bytes, Waits uint64 }

// counters are a rank's totals, by path and, where that was asked for, by target.
type counters struct {
	paths  [numPaths]struct{ ops, bytes, waits atomic.Uint64 }
	locked [numPaths]nic.Tally // what is counted under the NIC's lock
	flows  []flow              // by rank; nil: not counted
}

// flow is what this rank has moved to and from one other: with the CPU, and with the NIC.
type flow [2]struct{ ops, bytes atomic.Uint64 }

func (c *counters) add(p Path, rank, bytes int) {
	c.paths[p].ops.Add(1)
	c.paths[p].bytes.Add(uint64(bytes))
	if c.flows != nil {
		c.flow(p, rank, bytes)
	}
}

func (e *Engine) note(p Path, rank, bytes int) {
	if e.count {
		e.counts.add(p, rank, bytes)
	}
}

// addLocked is add for who holds the NIC's lock.
func (c *counters) addLocked(p Path, rank, bytes int) {
	c.locked[p].Add(bytes)
	if c.flows != nil {
		c.flow(p, rank, bytes)
	}
}

// tally is where a transfer with r's memory on a path is counted under the NIC's lock; nil where that would not be all, or too much.
func (c *counters) tally(p Path, r *Remote) *nic.Tally {
	if c.flows != nil || r.measured {
		return nil
	}
	return &c.locked[p]
}

func (c *counters) flow(p Path, rank, bytes int) {
	f := &c.flows[rank][0]
	if p.OverNIC() {
		f = &c.flows[rank][1]
	}
	f.ops.Add(1)
	f.bytes.Add(uint64(bytes))
}

// count counts a transfer with r's memory, unless it is a measurement's, which nobody has asked for. What is counted is never taken back:
// who reads the totals now and then, as the launcher's page does, may rely on it that they do not fall.
func (c *counters) count(p Path, r *Remote, bytes int) {
	if !r.measured {
		c.add(p, r.Rank, bytes)
	}
}

func (c *counters) waited(p Path) { c.paths[p].waits.Add(1) }

// Stats returns the totals by path.
func (e *Engine) Stats() map[Path]Count {
	out := make(map[Path]Count)
	for p := range numPaths {
		c, l := &e.counts.paths[p], &e.counts.locked[p]
		waits := c.waits.Load()
		if n := e.nic(); p == PathBounce && n != nil {
			waits += n.Slept()
		}
		if n := (Count{c.ops.Load() + l.Ops.Load(), c.bytes.Load() + l.Bytes.Load(), waits}); n != (Count{}) {
			out[p] = n
		}
	}
	return out
}

// Flow returns what this rank has moved to and from rank, with the CPU and with the NIC; Waits are not known by target. All
// is zero unless Config.CountMapped is set.
func (e *Engine) Flow(rank int) (mapped, nic Count) {
	if e.counts.flows == nil {
		return mapped, nic
	}
	f := &e.counts.flows[rank]
	return Count{Ops: f[0].ops.Load(), Bytes: f[0].bytes.Load()}, Count{Ops: f[1].ops.Load(), Bytes: f[1].bytes.Load()}
}

// Firehoses returns what this rank's requests for other ranks' buckets met, and what it did for theirs. Both are zero
// where the NIC registers everything as a whole.
func (e *Engine) Firehoses() (origin firehose.HolderStats, target firehose.ServerStats) {
	n := e.nic()
	if n == nil || n.hoses == nil {
		return origin, target
	}
	return n.hoses.Stats()
}

// Foresight returns of how many uses of other ranks' buckets the predictor was told, and of how many it was not because their call sites
// had gained nothing by it.
func (e *Engine) Foresight() (told, untold uint64) {
	n := e.nic()
	if n == nil || n.hoses == nil {
		return 0, 0
	}
	return n.hoses.Foresight()
}

// FirehoseBudget returns how each rank's registrations are divided; zero where there are no buckets.
func (e *Engine) FirehoseBudget() firehose.Budget {
	n := e.nic()
	if n == nil || n.hoses == nil {
		return firehose.Budget{}
	}
	return n.hoses.Budget()
}

// FirehoseUnit returns the smallest bucket's size in bytes, 0 where there are none.
func (e *Engine) FirehoseUnit() int64 {
	n := e.nic()
	if n == nil || n.hoses == nil {
		return 0
	}
	return n.hoses.Unit()
}
