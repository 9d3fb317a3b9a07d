package hose

import (
	"context"
	"errors"
	"time"

	"gopgas/firehose"
	"gopgas/transport"
)

// TryLocked gets a firehose for piece id on the bucket that n bytes at address addr of far lie in, if that bucket is held. The
// key is valid until ReleaseLocked. Where it succeeds and the piece is to be used, NoteLocked comes next.
func (h *Set) TryLocked(id int32, far *Far, addr uint64, n int) (key uint64, ok bool) {
	if far.bare {
		return 0, false
	}
	v, err := h.viewLocked(far)
	if err != nil {
		return 0, false
	}
	at := addr - far.start
	if v.End(at)-at < uint64(n) {
		return 0, false
	}
	q := &h.q[id]
	if q.Put = nil; !h.holder.Try(v, q, at, uint64(n)) {
		return 0, false
	}
	return q.Key(0), true
}

// ReleaseLocked lets go of the firehose of piece id, whose operation is over or will not take place.
func (h *Set) ReleaseLocked(id int32) {
	h.doneLocked(id)
	if h.holder.Release(&h.q[id]) {
		h.work.Store(true)
	}
}

// letGoLocked releases a request if it is there.
func (h *Set) letGoLocked(q *firehose.Request) {
	if q.State() == firehose.Ready && h.holder.Release(q) {
		h.work.Store(true)
	}
}

// Held reports whether the bucket that n bytes at address addr of far lie in is held now.
func (h *Set) Held(far *Far, addr uint64, n int) bool {
	if far.bare {
		return false
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	v, err := h.viewLocked(far)
	return err == nil && h.holder.Held(v, addr-far.start, uint64(n))
}

// Cut returns how many of n bytes at address addr of far one operation can carry that carries most at most: no part crosses
// the end of a bucket.
func (h *Set) Cut(far *Far, addr uint64, n, most int) (int, error) {
	if far.bare {
		return min(n, most), nil
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	v, err := h.viewLocked(far)
	if err != nil {
		return 0, err
	}
	n = min(n, most)
	if at := addr - far.start; v.End(at)-at < uint64(n) {
		v.Cut()
		n = int(v.End(at) - at)
	}
	return n, nil
}

// Attach gets a firehose for piece id on the bucket that n bytes at address addr of far lie in; it waits for a move. A put may
// travel in that: then carried is true and nothing is left to do. If direct is true the piece has a firehose, which key opens,
// until ReleaseLocked. Else it has none: the bytes must go by message, if they were not carried. That is so, too, where others of this rank have had
// buckets made smaller since Cut, and the bytes lie in several now: a key is for one. read: the bytes come here.
func (h *Set) Attach(name string, id int32, far *Far, addr uint64, n int, put []byte, read bool) (key uint64, direct, carried bool, err error) {
	if far.bare {
		return 0, false, false, nil
	}
	q := &h.q[id]
	h.lock.Lock()
	v, err := h.viewLocked(far)
	if err != nil {
		h.lock.Unlock()
		return 0, false, false, transport.NewOpError(name, far.rank, err)
	}
	q.Put = put
	state := h.holder.Acquire(v, q, addr-far.start, uint64(n))
	if state != firehose.Failed {
		h.NoteLocked(id, far, read)
	}
	h.lock.Unlock()
	if state == firehose.Waiting {
		begun := h.sched.Now()
		h.work.Store(true)
		h.send()
		err = h.await(name, far.rank, q, begun)
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	ready := q.State() == firehose.Ready
	q.Put = nil
	switch {
	case ready && (err != nil || q.Carried() || q.Run().Count > 1): // more than one: buckets have become smaller since the part was cut
		h.letGoLocked(q)
	case ready:
		return q.Key(0), true, false, nil
	case err == nil && !q.Carried() && !fallsBack(q.Err()):
		err = transport.NewOpError(name, far.rank, q.Err())
	}
	h.doneLocked(id)
	return 0, false, q.Carried(), err
}

// await returns when q, which was sent at begun, waits no longer. On an error everything with the rank has ended.
func (h *Set) await(name string, rank int, q *firehose.Request, begun time.Duration) error {
	err := h.nic.WaitUntil(context.Background(), name, rank, func() bool {
		h.lock.Lock()
		defer h.lock.Unlock()
		return q.State() != firehose.Waiting
	})
	h.lock.Lock()
	defer h.lock.Unlock()
	switch {
	case err != nil:
		h.holder.Lost(rank, err) // the rank is gone, or this one's NIC
	case q.State() == firehose.Ready && q.Moved():
		h.timedLocked(h.sched.Now()-begun, q.Run())
	}
	return err
}

// fallsBack reports whether a firehose was refused for a reason that leaves messages possible. Too large is what was cut for one bucket, or for a
// claim, before others of this rank have had buckets made smaller.
func fallsBack(err error) bool {
	return errors.Is(err, firehose.ErrRefused) || errors.Is(err, firehose.ErrNoShare) || errors.Is(err, firehose.ErrMove) || errors.Is(err, firehose.ErrTooLarge)
}
