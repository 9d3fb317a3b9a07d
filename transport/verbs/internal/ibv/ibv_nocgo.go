//go:build !linux || !cgo || !(amd64 || arm64)

package ibv

import "errors"

// errNoCgo is the error of everything where the package was built without C.
var errNoCgo = errors.New("this program was built without cgo, or not for Linux on amd64 or arm64")

// Load finds libibverbs. It is cheap after the first time. The error says what is missing.
func Load() error { return errNoCgo }

// Devices returns the names of the RDMA devices.
func Devices() ([]string, error) { return nil, errNoCgo }

// Open opens a device and says what it can do.
func Open(string) (context uint64, l Limits, err error) { return 0, l, errNoCgo }

// Close closes a device.
func Close(uint64) error { return errNoCgo }

// QueryPort returns the state of a port; the first is 1.
func QueryPort(uint64, int) (p Port, err error) { return p, errNoCgo }

// QueryGIDs returns the first 256 entries in use of the address tables of all ports.
func QueryGIDs(uint64) ([]GID, error) { return nil, errNoCgo }

// QueryPKey returns the partition key at index of a port's table.
func QueryPKey(uint64, int, int) (uint16, error) { return 0, errNoCgo }

// Setup makes the protection domain, completion channel and queue, and receive queue of n.Context.
func Setup(*NIC) error { return errNoCgo }

// Teardown ends what Setup made. Queue pairs and regions must be gone, and nobody may be in TakeEvent.
func Teardown(*NIC) error { return errNoCgo }

// Register pins bytes at addr and returns their keys.
func Register(*NIC, uint64, uint64, int) (r Region, err error) { return r, errNoCgo }

// Deregister ends a registration.
func Deregister(uint64) error { return errNoCgo }

// CreateQP makes a queue pair of the wanted sizes, which become the granted ones.
func CreateQP(*NIC, *QP) error { return errNoCgo }

// ConnectQP makes a new queue pair ready to send.
func ConnectQP(uint64, *Path) error { return errNoCgo }

// FailQP ends a queue pair's work: all that it has not done completes as flushed.
func FailQP(uint64) error { return errNoCgo }

// DestroyQP ends a queue pair. Completions not yet polled may be lost.
func DestroyQP(uint64) error { return errNoCgo }

// Post posts up to Batch operations, those of each queue pair in order, and returns how many were refused: they
// have Error set, and no operation behind a refused one of the same queue pair was posted. It allocates nothing.
func Post(ops []Send) (refused int) { return len(ops) }

// PostPoll is Post and then Poll, in one crossing. What is wrong with the polling the next Poll says.
func PostPoll(ops []Send, _ *NIC, _ []Done) (refused, took int) { return len(ops), 0 }

// PostRecv adds up to Batch receive buffers and returns how many were taken.
func PostRecv(*NIC, []Recv) (int, error) { return 0, errNoCgo }

// Poll takes up to min(len(out), Batch) completions. It allocates nothing.
func Poll(*NIC, []Done) (int, error) { return 0, errNoCgo }

// Arm asks for an event at the next completion, or, of what was sent with FlagSolicited, at the next that has arrived.
func Arm(*NIC, bool) error { return errNoCgo }

// TakeEvent takes an event of Arm's; false where there is none. The channel's descriptor must not block.
func TakeEvent(*NIC) (bool, error) { return false, errNoCgo }

// TakeAsync takes an asynchronous event; false where there is none. The descriptor must not block.
func TakeAsync(*NIC) (e Event, ok bool, err error) { return e, false, errNoCgo }

// AckAsync says that nobody asks any more whose the object of an event is.
func AckAsync(Event) {}

// StatusText is the library's text for Done.Status.
func StatusText(uint32) string { return "" }

// EventText is the library's text for Event.Type.
func EventText(uint32) string { return "" }
