package transport

import (
	"errors"
	"fmt"
	"net"
)

// Sentinels; match with errors.Is.
var (
	// ErrUnsupported: this machine, build or peer lacks what was asked for.
	ErrUnsupported = errors.New("not supported here")
	// ErrClosed: the object was freed or closed before the call.
	ErrClosed error = closed{}
	// ErrPeerGone: a rank that the call needs has ended or does not answer.
	ErrPeerGone = errors.New("peer is gone")
	// ErrLimit is wrapped by every *LimitError.
	ErrLimit = errors.New("limit reached")
)

// closed is net.ErrClosed in words that fit all that can be freed or closed.
type closed struct{}

func (closed) Error() string { return "used after it was freed or closed" }

// Is makes it equal to net.ErrClosed.
func (closed) Is(target error) bool { return target == net.ErrClosed }

// OpError is the error of every operation that names a rank. Rank is -1 where no single rank is meant.
type OpError struct {
	Op   string // what was tried, in the API's words: "put", "barrier"
	Rank int    // the rank it concerns
	Err  error
}

// NewOpError wraps err, and returns nil for nil. Without a rank of its own, -1, it names the one that err names.
func NewOpError(op string, rank int, err error) error {
	if err == nil {
		return nil
	}
	if inner := (*OpError)(nil); rank < 0 && errors.As(err, &inner) {
		rank = inner.Rank
	}
	return &OpError{Op: op, Rank: rank, Err: err}
}

func (e *OpError) Error() string {
	if e.Rank < 0 {
		return e.Op + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s (rank %d): %v", e.Op, e.Rank, e.Err)
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// LimitError says which limit of the machine stands in the way, and how to raise it. It is found before
// anything is used: memory that cannot be had is never a signal later.
type LimitError struct {
	What    string // what was wanted: "64.0 MiB of shared memory for a symmetric heap"
	Found   string // what there is: "12.0 MiB free on /dev/shm"
	Needed  string // what it takes: "64.0 MiB"
	Setting string // the cure: "mount -o remount,size=1G /dev/shm"
	Err     error  // the system's own error, if any
}

func (e *LimitError) Error() string {
	s := fmt.Sprintf("%s: found %s, needed %s; to change it: %s", e.What, e.Found, e.Needed, e.Setting)
	if e.Err != nil {
		s += " (" + e.Err.Error() + ")"
	}
	return s
}

// Unwrap lets errors.Is find ErrLimit and the system's error.
func (e *LimitError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrLimit}
	}
	return []error{ErrLimit, e.Err}
}
