package pgas

import (
	"fmt"
	"sync/atomic"
)

// joined: this process has joined, or is about to join, the job that a launcher started it in; nil: not yet. It points to the error of the start that
// came to nothing, and leaves no way to try again.
var joined atomic.Pointer[error]

// joinOnce takes the one place that a launcher has for this process: it counts each process once, and the first world takes over the connections
// with it. A second world is refused, also while the first one starts. fail tells of a start that has come to nothing, and gives the place back where
// the launcher can be asked again.
func joinOnce(environ []string) (fail func(err error, again bool), err error) {
	_, fd := lookup(environ, "PMI_FD")
	_, port := lookup(environ, "PMI_PORT")
	if !fd && !port {
		return func(error, bool) {}, nil
	}
	if !joined.CompareAndSwap(nil, new(error)) {
		return nil, refused(joined.Load())
	}
	return func(err error, again bool) {
		if again {
			joined.Store(nil)
		} else {
			joined.Store(&err)
		}
	}, nil
}

// refused says why a process may not join.
func refused(first *error) error {
	if first != nil && *first != nil {
		return fmt.Errorf("join the job: this process has tried that before, which it can do once: %w; it failed then: %w", ErrUnsupported, *first)
	}
	return fmt.Errorf("join the job: this process has joined its launcher's job already, which it can do once: %w; keep that World to the end and "+
		"make teams of it (Team.Split), or leave the PMI_ variables out of Config.Environ, for a world of this process alone", ErrUnsupported)
}
