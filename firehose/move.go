package firehose

import "errors"

// Move is what an origin asks of a target: to let it have the buckets of New, for which it gives up those of Old. A
// move without New only gives up.
type Move struct {
	ID  uint64 // names the move among those of its origin to its target
	New []Run
	Old []Run
	Put Put
}

// Put is a small put that travels in the move which its target needs: the owner stores it when it answers.
type Put struct {
	Range uint32
	Off   uint64
	Data  []byte // empty: none
}

// Reply answers a move.
type Reply struct {
	ID     uint64
	Status Status
	Stored bool     // the move's put is in memory
	Keys   []uint64 // of the buckets of New, in their order; none unless the move was granted
}

// Status is the outcome of a move. Whatever it is but malformed, Old was given up.
type Status uint8

// The outcomes.
const (
	statusGranted   Status = iota
	statusRefused          // the owner's machine did not let it register: use messages
	statusWithdrawn        // the range is not exposed, or not any more
	statusMalformed        // the owner did not understand, or the origin asked for more than its share; nothing happened
)

// Pin is a registered bucket. Key is what a peer needs to reach it, Handle what its owner needs to use or to
// deregister it; both are the Registrar's words.
type Pin struct{ Key, Handle uint64 }

// Registrar registers memory of this rank. It may take its time; the Server calls it without its lock.
type Registrar interface {
	// Register registers each bucket of run by itself and writes its Pin to pins[i]; all of them or, with an error, none.
	Register(r Range, run Run, pins []Pin) error
	// Deregister ends the registrations of run. Whatever it returns, they count as gone.
	Deregister(r Range, run Run, pins []Pin) error
}

// Mover carries moves to their targets. Replies come back through Holder.Reply, in any order.
type Mover interface {
	// Move sends m to peer. It returns false where there is no room for it now, and an error where there will never
	// be; it neither waits nor keeps m.
	Move(peer int, m *Move) (sent bool, err error)
}

// Errors of requests; match with errors.Is. Each says that firehose cannot reach the bytes and that messages must.
var (
	// ErrRefused: the owner's machine did not let it register more memory.
	ErrRefused = errors.New("the target cannot register more memory now")
	// ErrWithdrawn: the owner has taken the range back.
	ErrWithdrawn = errors.New("the target has withdrawn the memory")
	// ErrNoShare: the budget has room for not even one page a pair of ranks.
	ErrNoShare = errors.New("the registration budget is too small for a single page for each pair of ranks")
	// ErrTooLarge: a request for more buckets than may be held at once; Holder.Piece cuts it.
	ErrTooLarge = errors.New("the request is larger than the share of the registration budget")
	// ErrMove: a move or a reply that does not fit what was agreed.
	ErrMove = errors.New("malformed firehose message")
)

// err is the error of requests whose move had the outcome.
func (s Status) err() error {
	switch s {
	case statusGranted:
		return nil
	case statusRefused:
		return ErrRefused
	case statusWithdrawn:
		return ErrWithdrawn
	default:
		return ErrMove
	}
}
