package peers

import "fmt"

// The rank block is memory of a rank, reachable for all, in which the others leave word: who is gone, and the
// bell that wakes it. Offsets in bytes; what different ranks write lies on different cache lines.
const (
	blockState = 0   // State of the owner
	TurnOff    = 64  // in the block of a node's first rank: whose turn it is to measure (seats.Board)
	blockBell  = 128 // rings, sleepers: 4 bytes each
	FirstOff   = 256 // not 0: some rank is gone; the first one + 1, where known
	PostOff    = 320 // the owner's seats.Post: bytes and gap
	blockGone  = 384 // a word for each rank: 0, or the Cause
)

// BlockBytes is the size of a rank block in a world of size ranks.
func BlockBytes(size int) int { return GoneOff(size) }

// GoneOff is where a rank block has the Cause of a rank's end.
func GoneOff(rank int) int { return blockGone + 8*rank }

// State of a rank, as its block tells.
type State uint64

// The states. A rank that ends in another state than Left is gone.
const (
	Starting State = iota
	Up
	Left
)

// Cause says how a rank was lost, in a word that fits shared memory.
type Cause uint64

// Kinds of causes; the low 16 bits hold the exit code or signal.
const (
	causeExit Cause = (iota + 1) << 16
	causeSignal
	causeVanished
	causeSilent
	causeReturned
)

// Exited is the cause of a rank that ended with an exit code.
func Exited(code int) Cause { return causeExit | Cause(code&0xffff) }

// Signalled is the cause of a rank that a signal ended.
func Signalled(sig int) Cause { return causeSignal | Cause(sig&0xffff) }

// Causes without a number.
const (
	Vanished = causeVanished // its process ended, nobody told how
	Silent   = causeSilent   // its NIC does not answer
	Returned = causeReturned // its function returned without Close
)

func (c Cause) String() string {
	switch c &^ 0xffff {
	case causeExit:
		return fmt.Sprintf("exited with code %d", c&0xffff)
	case causeSignal:
		return fmt.Sprintf("was killed by signal %d", c&0xffff)
	case causeSilent:
		return "does not answer"
	case causeReturned:
		return "returned without closing its world"
	default:
		return "ended without closing its world"
	}
}
