package am

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// headerBytes is the size of a message without its payload.
const headerBytes = 64

// ErrMessage: a message that is not one of ours. Match with errors.Is.
var ErrMessage = errors.New("malformed active message")

// header is the first 64 bytes of a message.
type header struct {
	kind, handler uint8 // of a reply, handler is the status
	slot          uint16
	from          uint32
	seq           uint64 // of its slot, whoever the requests before were to: 32 bits are around in hours
	n             uint16
	args          [4]uint64
}

func (h header) encode(b []byte) {
	b[0], b[1] = h.kind, h.handler
	binary.LittleEndian.PutUint16(b[2:], h.slot)
	binary.LittleEndian.PutUint32(b[4:], h.from)
	binary.LittleEndian.PutUint64(b[8:], h.seq)
	for i, v := range h.args {
		binary.LittleEndian.PutUint64(b[16+8*i:], v)
	}
	binary.LittleEndian.PutUint16(b[48:], h.n)
}

func decode(b []byte) (header, error) {
	if len(b) < headerBytes {
		return header{}, fmt.Errorf("%w: %d bytes", ErrMessage, len(b))
	}
	h := header{kind: b[0], handler: b[1]}
	h.slot = binary.LittleEndian.Uint16(b[2:])
	h.from = binary.LittleEndian.Uint32(b[4:])
	h.seq = binary.LittleEndian.Uint64(b[8:])
	h.n = binary.LittleEndian.Uint16(b[48:])
	for i := range h.args {
		h.args[i] = binary.LittleEndian.Uint64(b[16+8*i:])
	}
	if h.kind != kindRequest && h.kind != kindReply || int(h.n) > len(b)-headerBytes || h.slot >= ownRequests {
		return header{}, fmt.Errorf("%w: kind %d, %d bytes of payload, slot %d", ErrMessage, h.kind, h.n, h.slot)
	}
	return h, nil
}
