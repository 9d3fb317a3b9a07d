package regmgr

import (
	"errors"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// errPanic is wrapped by the error of a registration, or of its end, in which the NIC's code has panicked.
var errPanic = errors.New("the NIC panicked")

// guarded calls the Registrar. A panic in it ends as a refusal, with its cause: whoever waits for the region, which is in
// transition, must not wait for ever, and the helper goes on with other regions.
type guarded struct{ Registrar }

// Register is the Registrar's.
func (g guarded) Register(r mem.Range, a transport.Access) (key transport.Region, err error) {
	defer recovered(&err)
	return g.Registrar.Register(r, a)
}

// Deregister is the Registrar's. After a panic nobody knows whether the memory is still registered: it counts as stuck.
func (g guarded) Deregister(key transport.Region) (err error) {
	defer recovered(&err)
	return g.Registrar.Deregister(key)
}

// recovered makes an error of a panic.
func recovered(err *error) {
	switch cause := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("%w: %w", errPanic, cause)
	default:
		*err = fmt.Errorf("%w: %v", errPanic, cause)
	}
}
