package pgas

import (
	"fmt"
	"sync/atomic"
)

// joined: this process has joined the job that a launcher started it in.
var joined atomic.Bool

// joinOnce refuses a second world under a launcher, which counts each process once and whose connections the first has taken over.
func joinOnce(environ []string, joined bool) error {
	_, fd := lookup(environ, "PMI_FD")
	_, port := lookup(environ, "PMI_PORT")
	if !joined || !fd && !port {
		return nil
	}
	return fmt.Errorf("join the job: this process has joined its launcher's job already, which it can do once: %w; keep that World to the end and "+
		"make teams of it (Team.Split), or leave the PMI_ variables out of Config.Environ, for a world of this process alone", ErrUnsupported)
}
