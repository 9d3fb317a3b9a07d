package pgas

import (
	"fmt"
	"sync/atomic"
)

// joined: this process has joined, or is about to join, the job that a launcher started it in.
var joined atomic.Bool

// joinOnce takes the one place that a launcher has for this process: it counts each process once, and the first world takes over the connections
// with it. A second world is refused, also while the first one starts. fail gives the place back, for a start that has come to nothing.
func joinOnce(environ []string) (fail func(), err error) {
	_, fd := lookup(environ, "PMI_FD")
	_, port := lookup(environ, "PMI_PORT")
	if !fd && !port {
		return func() {}, nil
	}
	if !joined.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("join the job: this process has joined its launcher's job already, which it can do once: %w; keep that World to the end and "+
			"make teams of it (Team.Split), or leave the PMI_ variables out of Config.Environ, for a world of this process alone", ErrUnsupported)
	}
	return func() { joined.Store(false) }, nil
}
