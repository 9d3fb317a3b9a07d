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
	bufs  []buffer // by slot
	free  []uint32
	batch [ibv.Batch]ibv.Recv
}

// buffer is one receive buffer.
type buffer struct {
	transport.Recv
	failures int // of messages in a row, for which the device holds this side responsible
}

// mostFailures is how many messages may fail so in a buffer before it is taken for the cause. Not the first: some
// devices say the same of a message that is too long.
const mostFailures = 3

func (q *recvQueue) init(n int) {
	q.bufs = make([]buffer, n)
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
			q.bufs[slot] = buffer{Recv: *b}
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
	q.freeLocked(slot)
	return cookie
}

func (q *recvQueue) freeLocked(slot uint32) {
	q.bufs[slot] = buffer{}
	q.free = append(q.free, slot)
}

// giveBack posts a buffer that a failed message has used again (W4), and reports whether the device has taken it. If
// not, the slot is free.
func (d *domain) giveBack(slot uint32, status uint32) (cookie uint64, posted bool) {
	q := &d.recvs
	q.mu.Lock()
	defer q.mu.Unlock()
	b := &q.bufs[slot]
	if faultOf(status) == faultLocal && status != ibv.StatusFlush {
		b.failures++
	}
	if b.failures < mostFailures {
		q.batch[0] = ibv.Recv{ID: recvBit | uint64(slot), SGE: ibv.SGE{
			Addr: b.Buf.Mem.Addr(), Bytes: uint32(b.Buf.Mem.Bytes), LKey: key32(b.Buf.LKey),
		}}
		if took, err := ibv.PostRecv(&d.nic, q.batch[:1]); took == 1 && err == nil {
			return 0, true
		}
	}
	cookie = b.Cookie
	q.freeLocked(slot)
	return cookie, false
}
