package proto

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"gopgas/internal/am"
	"gopgas/internal/prices"
)

// What transfers cost is the same for all ranks of a node that have the same NIC. So its first rank measures, as soon as any of them wants to know, and tells the
// others, who measure only where they get no answer that is for them. What it has found of transfers with another rank it tells, too; who hears it
// before that finds it out by itself.
//
// The answer is a sheet of package prices, a piece at a time.
const (
	sheetHead  = 16                    // bytes before each piece: which sheet it is of, and how long that is; both 0: there is none yet
	sheetMost  = 1 << 20               // no sheet is as long
	sheetPause = 10 * time.Millisecond // times the ranks of the node: how long who has got none waits before he asks again
)

var errNoSheet = errors.New("another rank's costs are not this one's")

// kin says which NICs' costs are the same.
func (n *device) kin() uint64 { return hashOf([]byte(n.lookalikes())) }

// lookalikes describes the NICs whose costs are the same on a machine: those of a name, with the same limits and slots.
func (n *device) lookalikes() string {
	m := n.machine()
	m.Caps.MaxPinned = 0
	return fmt.Sprintf("%s %+v, %d slots of %d bytes, payloads of %d, bulk slots of %d folded %d times, leases: %v",
		n.e.config.NICName, m.Caps, m.Slots, m.Slot, m.Payload, m.BulkSlot, m.Fold, m.Lease)
}

// hashOf is never 0.
func hashOf(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64() | 1
}

// tell answers askPrices, whose arguments are the asker's kin, where the piece is to begin, and how long it may be with its head. It begins to measure if nobody has.
func (n *device) tell(r am.Request, out []byte) (int, uint8) {
	most := min(uint64(len(out)), r.Args[2])
	if most <= sheetHead || r.Args[1] > sheetMost {
		return 0, statusMalformed
	}
	g := &n.gauge
	over := g.over.Load()
	p := n.prices()
	switch {
	case r.Args[0] != n.kin(), over && !p.Measured:
		return 0, statusRefused
	case !over, g.peer.Load() == peerMeasuring:
		n.measure()
		clear(out[:sheetHead])
		return sheetHead, statusOK
	}
	s := g.told.Load()
	if s == nil || s.of != p {
		written, err := p.Sheet()
		if err != nil {
			return 0, statusRefused
		}
		s = &told{p, written, hashOf(written)}
		g.told.Store(s)
	}
	binary.LittleEndian.PutUint64(out, s.which)
	binary.LittleEndian.PutUint64(out[8:], uint64(len(s.written)))
	return sheetHead + copy(out[sheetHead:most], s.written[min(r.Args[1], uint64(len(s.written))):]), statusOK
}

// told is the sheet of some prices, which others ask for piece by piece.
type told struct {
	of      *prices.Prices
	written []byte
	which   uint64 // hashOf it
}

// hear returns what the first rank of the node has measured. It waits until that has.
func (n *device) hear() (*prices.Prices, error) {
	rank := n.e.first()
	if rank == n.e.Rank || n.Payload <= sheetHead || n.Slot <= sheetHead {
		return nil, errNoSheet
	}
	ranks, _ := n.e.here()
	var sheet []byte
	for of := uint64(0); ; {
		which, bytes, piece, err := n.askSheet(rank, len(sheet))
		switch {
		case err != nil:
			return nil, err
		case which == 0:
			if n.e.Sched.Sleep(n.Context(), time.Duration(ranks)*sheetPause) != nil {
				return nil, errNoSheet
			}
			continue
		case which != of && len(sheet) > 0: // it has found out more meanwhile
			sheet = sheet[:0]
			continue
		case len(piece) == 0:
			return nil, errNoSheet
		}
		of = which
		if sheet = append(sheet, piece...); len(sheet) < bytes {
			continue
		}
		if hashOf(sheet) != which {
			return nil, errNoSheet
		}
		return prices.FromSheet(n.machine(), sheet)
	}
}

// askSheet asks a rank for the piece of its sheet that begins at a byte.
func (n *device) askSheet(rank, at int) (which uint64, bytes int, piece []byte, err error) {
	answer := make([]byte, min(n.Payload, n.Slot))
	if err := n.inquire(rank, askPrices, [4]uint64{n.kin(), uint64(at), uint64(len(answer))}, answer); err != nil {
		return 0, 0, nil, err
	}
	which, bytes = binary.LittleEndian.Uint64(answer), int(binary.LittleEndian.Uint64(answer[8:]))
	if bytes < 0 || bytes > sheetMost {
		return 0, 0, nil, errNoSheet
	}
	return which, bytes, answer[sheetHead:min(len(answer), sheetHead+max(0, bytes-at))], nil
}
