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
}
