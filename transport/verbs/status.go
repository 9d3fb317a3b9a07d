package verbs

import (
	"fmt"

	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
)

// StatusError says in the device's words how an operation failed, and what the likely cause is.
type StatusError struct {
	Op     string // "write", "fetch-add", "receive", or what else was being done
	Peer   int    // rank; -1: no single one
	Status string // the device's words
	Code   uint32 // its number
	Vendor uint32 // the vendor's number
	Cause  string // the likely cause, and what to do
	Err    error  // what it amounts to: transport.ErrPeerGone, or nil
}

func (e *StatusError) Error() string {
	s := e.Op
	if e.Peer >= 0 {
		s += fmt.Sprintf(" (rank %d)", e.Peer)
	}
	s += ": " + e.Status
	if e.Code != 0 || e.Vendor != 0 {
		s += fmt.Sprintf(" (status %d, vendor %#x)", e.Code, e.Vendor)
	}
	if e.Cause != "" {
		s += ": " + e.Cause
	}
	return s
}

// Unwrap returns what the failure amounts to.
func (e *StatusError) Unwrap() error { return e.Err }

// kindNames are the API's words for kinds.
var kindNames = [...]string{
	transport.OpWrite: "write", transport.OpRead: "read", transport.OpWriteImm: "write with immediate",
	transport.OpSend: "send", transport.OpFetchAdd: "fetch-add", transport.OpCompareSwap: "compare-swap",
	transport.OpRecv: "receive", transport.OpPeerDown: "peer down", transport.OpPortDown: "port down",
}

func kindName(k transport.Kind) string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("operation of kind %d", k)
}

func isAtomic(k transport.Kind) bool {
	return k == transport.OpFetchAdd || k == transport.OpCompareSwap
}

// fault is what broke a pair.
type fault uint8

const (
	faultNone       fault = iota
	faultRefused          // the target's NIC refused an operation: it did none of what came behind
	faultLocal            // this NIC refused an operation; what came behind may have been sent
	faultSilent           // the peer's NIC does not answer
	faultPort             // this NIC's port has no link
	faultLost             // the link has broken without a word
	faultPeerEnded        // the peer has ended its end
	faultPeerClosed       // the peer has closed its domain
	faultDisconnect       // Disconnect
	faultReplaced         // the peer has connected anew
	faultAnew             // another domain of the peer's rank has connected, so the peer's is gone
	faultClosed           // this domain has closed
	faultDevice           // the device says that the queue pair is broken
)

// faultOf says what a failed completion means for its pair.
func faultOf(status uint32) fault {
	switch status {
	case ibv.StatusRemAccess, ibv.StatusRemInvReq, ibv.StatusRemOp:
		return faultRefused
	case ibv.StatusRetryExc, ibv.StatusRespTimeout, ibv.StatusRNRRetryExc:
		return faultSilent
	default:
		return faultLocal
	}
}

// statusOf translates the device's status of the operation that broke its pair.
func statusOf(status uint32, k transport.Kind) transport.Status {
	switch status {
	case ibv.StatusOK:
		return transport.StatusOK
	case ibv.StatusRemAccess, ibv.StatusRemInvReq, ibv.StatusRemOp:
		if k == transport.OpSend {
			return transport.StatusTooLong // devices differ in which of the three it is
		}
		return transport.StatusRemoteAccess
	case ibv.StatusLocLen, ibv.StatusLocQPOp, ibv.StatusLocProt, ibv.StatusLocAccess:
		return transport.StatusLocalAccess
	case ibv.StatusRetryExc, ibv.StatusRespTimeout, ibv.StatusRNRRetryExc:
		return transport.StatusPeerGone
	default:
		return transport.StatusFlushed
	}
}

// ghostStatus is how a record that the NIC did not complete with success is reported. first: it is the first one;
// posted: the NIC had it; device: the NIC's status of the first one; gone: the verdict on the peer.
func ghostStatus(k transport.Kind, f fault, first, posted, gone bool, device uint32) transport.Status {
	if first && device != ibv.StatusOK && f != faultPort {
		s := statusOf(device, k)
		switch {
		case s == transport.StatusPeerGone && isAtomic(k):
			return transport.StatusInDoubt
		case s == transport.StatusPeerGone && !gone:
			return transport.StatusFlushed
		case (s == transport.StatusRemoteAccess || s == transport.StatusTooLong) && gone:
			return transport.StatusPeerGone // a process that is killed loses its registrations before its queue pairs
		case s != transport.StatusFlushed:
			return s
		}
	}
	switch {
	case posted && isAtomic(k) && f != faultRefused:
		return transport.StatusInDoubt
	case first && posted && gone:
		return transport.StatusPeerGone
	default:
		return transport.StatusFlushed
	}
}

// cause is the likely cause of a device's status.
func cause(status uint32, k transport.Kind, peer int) string {
	refused := faultOf(status) == faultRefused
	switch {
	case refused && k == transport.OpSend:
		return fmt.Sprintf("the message is longer than rank %d's receive buffer, or the buffer is not covered by its key", peer)
	case status == ibv.StatusRemAccess:
		return fmt.Sprintf("the key, the address or the right is not one that rank %d has registered, or it has ended the registration", peer)
	case refused:
		return fmt.Sprintf("rank %d's NIC does not do this operation there", peer)
	}
	switch status {
	case ibv.StatusLocProt, ibv.StatusLocQPOp, ibv.StatusLocAccess, ibv.StatusLocLen:
		return "this rank's own memory is not covered by its key, or may not be written"
	case ibv.StatusRetryExc, ibv.StatusRespTimeout:
		return fmt.Sprintf("rank %d has ended, its queue pair is broken, or the network between is down", peer)
	case ibv.StatusRNRRetryExc:
		return fmt.Sprintf("rank %d has posted no receive buffer", peer)
	default:
		return ""
	}
}

// words says what a fault is, for operations that were flushed by it.
func (f fault) words(peer int) string {
	switch f {
	case faultRefused:
		return fmt.Sprintf("an operation before it was refused by rank %d's NIC, which breaks the connection", peer)
	case faultLocal:
		return "an operation before it was refused by this rank's NIC, which breaks the connection"
	case faultSilent:
		return fmt.Sprintf("rank %d's NIC did not answer", peer)
	case faultPort:
		return "this rank's port has, or had for a moment, no link"
	case faultLost:
		return fmt.Sprintf("the link to rank %d broke", peer)
	case faultPeerEnded:
		return fmt.Sprintf("rank %d has ended the connection, or an operation of its own broke it", peer)
	case faultPeerClosed:
		return fmt.Sprintf("rank %d has closed its domain", peer)
	case faultDisconnect:
		return "the connection was ended by Disconnect"
	case faultReplaced:
		return fmt.Sprintf("rank %d has connected anew", peer)
	case faultAnew:
		return fmt.Sprintf("rank %d has ended, and was started anew", peer)
	case faultClosed:
		return "the domain was closed"
	case faultDevice:
		return fmt.Sprintf("the device has broken the queue pair: probably an operation of rank %d's was refused here", peer)
	default:
		return "the connection has ended"
	}
}
