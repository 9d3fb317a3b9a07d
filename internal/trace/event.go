package trace

import "strconv"

// MaxStack is the number of return addresses that an event can carry.
const MaxStack = 8

// Kind is what a transfer does.
type Kind uint8

// Kinds.
const (
	Put Kind = 1 + iota
	Get
	Accumulate
	Atomic
	kindsEnd
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case Put:
		return "put"
	case Get:
		return "get"
	case Accumulate:
		return "accumulate"
	case Atomic:
		return "atomic"
	}
	return "kind " + strconv.Itoa(int(k))
}

// Event is one transfer.
type Event struct {
	At    int64  // nanoseconds of the rank's clock when the program called
	Took  int64  // nanoseconds until the transfer was complete; 0: unknown
	Addr  uint64 // of the origin's buffer
	Bytes uint64
	Peer  int32 // the target
	Kind  Kind
	Stack [MaxStack]uintptr // zero-padded
	To    Range             // what of the target's memory it lies in; zero: unknown
	Off   uint64            // where in To the transfer begins, bytes
}

// Range is memory that the target of a transfer exposes. ID numbers the exposures that the rank which transfers has seen, so
// that memory exposed anew differs from what was there before. Start is its first byte's address at the target.
type Range struct {
	ID           uint32
	Start, Bytes uint64
}

// Holds reports whether n bytes at off lie in the range. The zero Range holds nothing.
func (r Range) Holds(off, n uint64) bool {
	return r.ID != 0 && off <= r.Bytes && n <= r.Bytes-off && r.Start+r.Bytes >= r.Start
}

// Head says whose events a file holds.
type Head struct {
	Rank, Ranks int
	Node        int // which ranks share a machine
}

// File is a trace of one rank, read.
type File struct {
	Head
	Events []Event // in the order of their calls
	Lost   uint64  // events that the recorder had no room for
	Format int     // version of the file that was read; events of version 1 have no To
}
