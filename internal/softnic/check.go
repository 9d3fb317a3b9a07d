package softnic

import (
	"errors"
	"fmt"

	"gopgas/transport"
)

// Reasons to refuse an operation, in the words of who made it.
var (
	errKind       = errors.New("post: no such kind of operation")
	errNoAtomics  = fmt.Errorf("post: this NIC has no atomics: %w", transport.ErrUnsupported)
	errNoSends    = fmt.Errorf("post: this NIC has no sends: %w", transport.ErrUnsupported)
	errNoWriteImm = fmt.Errorf("post: this NIC has no write with immediate: %w", transport.ErrUnsupported)
	errInlineKind = errors.New("post: only writes and sends may be inline")
	errMisaligned = errors.New("post: an atomic needs a target address that is a multiple of 8")
	errAtomicSGE  = errors.New("post: an atomic needs one local piece of 8 bytes for the old value")
)

// Check says why an operation cannot be one of a NIC's that can do what caps says and has so many endpoints; nil: it can. It looks at the
// operation alone: whether memory is registered and the peer lives is found later. It allocates for an error only.
func Check(op *transport.Op, endpoints int, caps *transport.Caps) error {
	inline := op.Flags&transport.FlagInline != 0
	switch op.Kind {
	case transport.OpWrite:
	case transport.OpWriteImm:
		if !caps.WriteImm {
			return errNoWriteImm
		}
	case transport.OpSend:
		if !caps.Sends {
			return errNoSends
		}
	case transport.OpRead:
		if inline {
			return errInlineKind
		}
	case transport.OpFetchAdd, transport.OpCompareSwap:
		switch {
		case !caps.Atomics64:
			return errNoAtomics
		case inline:
			return errInlineKind
		case op.RAddr&7 != 0:
			return errMisaligned
		case op.NSGE != 1 || op.SGE[0].Mem.Bytes != 8:
			return errAtomicSGE
		}
	default:
		return errKind
	}
	if int(op.EP.Index) >= endpoints || op.EP.Incarnation == 0 {
		return fmt.Errorf("post: no endpoint %d of incarnation %d", op.EP.Index, op.EP.Incarnation)
	}
	if int(op.NSGE) > caps.MaxSGE {
		return fmt.Errorf("post: %d pieces, at most %d", op.NSGE, caps.MaxSGE)
	}
	n := Total(op.SGE[:op.NSGE])
	if n > caps.MaxMessage {
		return fmt.Errorf("post: %d bytes in one operation, at most %d", n, caps.MaxMessage)
	}
	if inline && n > caps.MaxInline {
		return fmt.Errorf("post: %d bytes inline, at most %d", n, caps.MaxInline)
	}
	return nil
}
