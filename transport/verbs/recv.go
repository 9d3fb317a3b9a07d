package verbs

import (
	"fmt"
	"sync"

	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
)

// recvBit marks the ID of a receive buffer; the rest is its slot.
const recvBit = 1 << 63

// recvQueue is what is known of the receive buffers that the device has.
type recvQueue struct {
	mu    sync.Mutex
	bufs  []transport.Recv // by slot
	free  []uint32
	batch [ibv.Batch]ibv.Recv
}

func (q *recvQueue) init(n int) {
	q.bufs = make([]transport.Recv, n)
	for i := n - 1; i >= 0; i-- {
		q.free = append(q.free, uint32(i))
	}
}

// PostRecv hands buffers to the device, up to 64 in one crossing; a short count says that the queue is full.
func (d *domain) PostRecv(bufs []transport.Recv) (n int, err error) {
	d.life.RLock()
	defer d.life.RUnlock()
	q := &d.recvs
	q.mu.Lock()
	defer q.mu.Unlock()
	if d.closed.Load() {
		return 0, transport.ErrClosed
	}
	if !d.caps.Sends {
		return 0, fmt.Errorf("post receive: the device has no shared receive queue: %w", transport.ErrUnsupported)
	}
	for n < len(bufs) && err == nil {
		batch := min(len(bufs)-n, len(q.free), ibv.Batch)
		if batch == 0 {
			return n, nil
		}
		for i := range batch {
			b, slot := &bufs[n+i], q.free[len(q.free)-1-i]
			q.bufs[slot] = *b
			q.batch[i] = ibv.Recv{ID: recvBit | uint64(slot), SGE: ibv.SGE{
				Addr: b.Buf.Mem.Addr(), Bytes: uint32(b.Buf.Mem.Bytes), LKey: key32(b.Buf.LKey),
			}}
		}
		var took int
		took, err = ibv.PostRecv(&d.nic, q.batch[:batch])
		q.free = q.free[:len(q.free)-took]
		n += took
		if took < batch {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("post receive: %w", err)
	}
	return n, err
}

// received takes a buffer that a message is in from the device's queue.
func (q *recvQueue) received(slot uint32) (cookie uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	cookie = q.bufs[slot].Cookie
	q.bufs[slot] = transport.Recv{}
	q.free = append(q.free, slot)
	return cookie
}

// giveBack posts a buffer that a failed message has used again (W4).
func (d *domain) giveBack(slot uint32) {
	q := &d.recvs
	q.mu.Lock()
	defer q.mu.Unlock()
	b := &q.bufs[slot]
	q.batch[0] = ibv.Recv{ID: recvBit | uint64(slot), SGE: ibv.SGE{
		Addr: b.Buf.Mem.Addr(), Bytes: uint32(b.Buf.Mem.Bytes), LKey: key32(b.Buf.LKey),
	}}
	if took, _ := ibv.PostRecv(&d.nic, q.batch[:1]); took == 0 {
		// The device takes none although one has just been used: leave the slot free for the program.
		q.bufs[slot] = transport.Recv{}
		q.free = append(q.free, slot)
	}
}
