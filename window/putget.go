package window

import (
	"context"
	"errors"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/transport"
)

// Put copies src to the elements of target's part from disp on. On return src may be reused; the data is visible
// at the target after a Flush or Fence.
func (w *Window[T]) Put(target, disp int, src []T) error {
	if uint(target) < uint(len(w.parts)) {
		if p, n := w.parts[target].direct(); uint(disp) < n && uint(len(src)) <= n-uint(disp) {
			if len(src) == 1 {
				*p.at(disp) = src[0]
				return nil
			}
			if long[T](len(src)) {
				copyLong(p.s[disp:], src)
			} else {
				copy(p.s[disp:], src)
			}
			return nil
		}
	}
	return w.c.put("put", target, disp, len(src), mem.Of(src))
}

// put asks the engine for n elements.
func (w *core) put(op string, target, disp, n int, src mem.Range) error {
	src, err := w.putting(op, target, disp, n, src)
	if err != nil || n == 0 {
		return err
	}
	return w.e.Put(&w.remotes[target], disp*w.elem.Bytes, src)
}

// putting is what comes before a put of n elements: it returns why there can be none, and where its source lies.
func (w *core) putting(op string, target, disp, n int, src mem.Range) (from mem.Range, err error) {
	if err := w.check(op, target, disp, n); err != nil || n == 0 {
		return src, err
	}
	if w.e.Peers.AnyGone() {
		if err := w.gone(op, target); err != nil {
			return src, err
		}
	}
	src = w.near(src)
	if w.race != nil {
		w.race.Put(op, target, disp, n, src, false)
	}
	return src, nil
}

// Get copies the elements of target's part from disp on to dst and returns when they are there.
func (w *Window[T]) Get(target, disp int, dst []T) error {
	if uint(target) < uint(len(w.parts)) {
		if p, n := w.parts[target].direct(); uint(disp) < n && uint(len(dst)) <= n-uint(disp) {
			if len(dst) == 1 {
				dst[0] = *p.at(disp)
				return nil
			}
			if long[T](len(dst)) {
				copyLong(dst, p.s[disp:])
			} else {
				copy(dst, p.s[disp:])
			}
			return nil
		}
	}
	return w.c.get(target, disp, len(dst), mem.Of(dst))
}

func (w *core) get(target, disp, n int, dst mem.Range) error {
	const op = "get"
	if err := w.check(op, target, disp, n); err != nil || n == 0 {
		return err
	}
	if w.e.Peers.AnyGone() {
		if err := w.gone(op, target); err != nil {
			return err
		}
	}
	dst = w.near(dst)
	if w.race != nil {
		w.race.Get(op, target, disp, n, dst, false)
	}
	return w.e.Get(&w.remotes[target], disp*w.elem.Bytes, dst)
}

// Handle is a transfer in flight. The zero Handle is done. Handles are plain values, which any goroutine may use; dropping one loses
// nothing but the news of its end. It is an alias, so go doc does not show its methods:
//
//	func (h Handle) Done() bool
//	func (h Handle) Wait(ctx context.Context) error
//	func (h Handle) String() string
//
// Done reports whether the transfer has ended, in success or in error; it does not wait. Wait returns when it has ended, with its error the
// first time it is asked. When ctx ends first, Wait returns ctx's cause, and the transfer goes on: its buffers stay the library's
// until Done. ctx may be nil.
type Handle = proto.Handle

// PutNB begins a Put. src belongs to the library until the handle is done. Through a NIC, small puts wait for more of
// their kind: they set out together, at the latest with this rank's next flush, wait, or other operation. Of these, those that begin
// where the one before has ended are one operation of the NIC, of up to 256 bytes, where the target's memory is registered as a whole.
func (w *Window[T]) PutNB(target, disp int, src []T) (Handle, error) {
	// A put whose source is copied on the way is done with it at once. This repeats Put, since a call of it would take as
	// long as the copy.
	if uint(target) < uint(len(w.parts)) {
		if p, n := w.parts[target].direct(); uint(disp) < n && uint(len(src)) <= n-uint(disp) {
			if len(src) == 1 {
				*p.at(disp) = src[0]
				return Handle{}, nil
			}
			if long[T](len(src)) {
				copyLong(p.s[disp:], src)
			} else {
				copy(p.s[disp:], src)
			}
			return Handle{}, nil
		}
	}
	return w.c.putNB(target, disp, len(src), mem.Of(src))
}

func (w *core) putNB(target, disp, n int, src mem.Range) (Handle, error) {
	if err := w.check("put", target, disp, n); err != nil || n == 0 {
		return Handle{}, err
	}
	if err := w.gone("put", target); err != nil {
		return Handle{}, err
	}
	src = w.near(src)
	if w.race != nil {
		return w.checkedNB(true, target, disp, src)
	}
	return w.e.PutNB(&w.remotes[target], disp*w.elem.Bytes, src)
}

// GetNB begins a Get. dst belongs to the library until the handle is done.
func (w *Window[T]) GetNB(target, disp int, dst []T) (Handle, error) {
	if uint(target) < uint(len(w.parts)) {
		if p, n := w.parts[target].direct(); uint(disp) < n && uint(len(dst)) <= n-uint(disp) {
			if long[T](len(dst)) {
				copyLong(dst, p.s[disp:])
			} else {
				copy(dst, p.s[disp:])
			}
			return Handle{}, nil
		}
	}
	return w.c.getNB(target, disp, len(dst), mem.Of(dst))
}

func (w *core) getNB(target, disp, n int, dst mem.Range) (Handle, error) {
	if err := w.check("get", target, disp, n); err != nil || n == 0 {
		return Handle{}, err
	}
	if err := w.gone("get", target); err != nil {
		return Handle{}, err
	}
	dst = w.near(dst)
	if w.race != nil {
		return w.checkedNB(false, target, disp, dst)
	}
	return w.e.GetNB(&w.remotes[target], disp*w.elem.Bytes, dst)
}

// Flush returns when all earlier puts and accumulates of this rank to target are visible there. Its error may be
// that of an earlier put to the target, of which the first flush is told. To a target that is gone every flush fails.
//
// It would inline, but in a frame of its own the fence's word shares no line with the caller's variables, whose loads
// then need not wait for it: 1.5 ns less after a Put.
//
//go:noinline
func (w *Window[T]) Flush(target int) error {
	if uint(target) < uint(w.c.direct.Load()) {
		fullFence()
		return nil
	}
	return w.c.flush(target)
}

func (w *core) flush(target int) error {
	if err := w.checkTarget("flush", target); err != nil {
		return err
	}
	w.team.RaceCheck().Flushed(w.remotes[target].Rank)
	if err := w.e.Flush(&w.remotes[target]); err != nil || !w.e.Peers.AnyGone() {
		return err
	}
	return w.gone("flush", target)
}

// FlushContext is Flush with a limit: when ctx ends first it returns ctx's cause, and what is under way goes on; a later flush
// waits for it. It is to Put what Handle.Wait is to PutNB.
func (w *Window[T]) FlushContext(ctx context.Context, target int) error {
	return w.c.flushContext(ctx, target)
}

func (w *core) flushContext(ctx context.Context, target int) error {
	if err := w.checkTarget("flush", target); err != nil {
		return err
	}
	if err := w.e.FlushContext(ctx, &w.remotes[target]); err != nil {
		return err
	}
	w.team.RaceCheck().Flushed(w.remotes[target].Rank)
	return w.gone("flush", target)
}

// FlushNB begins a Flush: the handle is done when all puts, accumulates and atomics that this rank has begun to target before are visible there,
// whatever it begins next. So a program learns that a block has arrived while later ones are under way, or computes meanwhile. The errors of
// Handle.Wait are those of Flush. It does not wait, unless races are looked for, and does not allocate.
func (w *Window[T]) FlushNB(target int) (Handle, error) { return w.c.flushNB(target) }

func (w *core) flushNB(target int) (Handle, error) {
	if err := w.checkTarget("flush", target); err != nil {
		return Handle{}, err
	}
	if err := w.gone("flush", target); err != nil {
		return Handle{}, err
	}
	r := &w.remotes[target]
	if c := w.team.RaceCheck(); w.race != nil {
		return proto.Watched(c.FlushBegun(r.Rank)), w.e.Flush(r)
	}
	return w.e.FlushNB(r), nil
}

// FlushAll is Flush for every target that has a part.
func (w *Window[T]) FlushAll() error {
	if w.c.direct.Load() != 0 {
		fullFence()
		return nil
	}
	return w.c.flushEach()
}

func (w *core) flushEach() error {
	const op = "flush"
	if err := w.flushAll(context.Background(), op); err != nil {
		return err
	}
	return w.goneAny(op)
}

// flushAll flushes every target; it ends with ctx, too.
func (w *core) flushAll(ctx context.Context, op string) error {
	if err := w.usable(op); err != nil {
		return err
	}
	var failed error
	for m := range w.remotes {
		if err := w.e.FlushContext(ctx, &w.remotes[m]); err != nil {
			if failed = both(failed, err); !proto.Flushed(ctx, err) {
				return failed
			}
			continue
		}
		w.team.RaceCheck().Flushed(w.remotes[m].Rank) // those that ctx has left no time for are not
	}
	return failed
}

// both is two errors, of which either or both may be nil.
func both(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Join(a, b)
}

// Order makes earlier puts to target visible there before later ones; it does not wait where the transport keeps
// the order of puts. It is what OpenSHMEM calls a fence.
func (w *Window[T]) Order(target int) error {
	if uint(target) < uint(w.c.direct.Load()) {
		storeFence()
		return nil
	}
	return w.c.order(target)
}

func (w *core) order(target int) error {
	if err := w.checkTarget("order", target); err != nil {
		return err
	}
	w.team.RaceCheck().Ordered(w.remotes[target].Rank)
	return w.e.Order(&w.remotes[target])
}

// Fence returns when everything that any member has done to the window before is visible to all. Collective. It is
// a fence in the sense of MPI and a barrier; what OpenSHMEM calls a fence is Order. It meets only fences of the same window: a
// member that is in another one's, or in a barrier, makes all get pgsync.ErrMismatch. A transfer of this rank that failed is reported; the others are met all the same.
func (w *Window[T]) Fence(ctx context.Context) error {
	return w.c.fence(ctx, epoch.fence)
}

// fence is a fence that makes the transition f of the epochs.
func (w *core) fence(ctx context.Context, f func(epoch) (epoch, error)) error {
	const op = "fence"
	if w.ep != nil {
		if err := w.ep.enter(f); err != nil {
			return transport.NewOpError(op, -1, err)
		}
	}
	return w.meet(ctx, op)
}

// meet flushes everything and waits for all members, who must do the same with the same window. They do not wait for what has failed.
func (w *core) meet(ctx context.Context, op string) error {
	failed := w.flushes(ctx, op)
	if !proto.Flushed(ctx, failed) {
		return failed
	}
	return both(failed, w.team.Meet(ctx, op, w.mark))
}

// flushes is flushAll as far as there is something to wait for.
func (w *core) flushes(ctx context.Context, op string) error {
	if w.direct.Load() != 0 {
		fullFence()
		return nil
	}
	return w.flushAll(ctx, op)
}

// FlushLocal returns when no transfer between this rank and target that was begun before uses this rank's memory:
// sources may be reused, and the destinations of GetNB hold their data. It says nothing about the target's memory. A get that was refused tells its
// handle; one from a target that is gone is not there, and the call fails.
func (w *Window[T]) FlushLocal(target int) error { return w.c.flushLocal(target) }

func (w *core) flushLocal(target int) error {
	if err := w.checkTarget("flush-local", target); err != nil {
		return err
	}
	w.team.RaceCheck().FlushedLocal(w.remotes[target].Rank)
	if err := w.e.FlushLocal(&w.remotes[target]); err != nil || !w.e.Peers.AnyGone() {
		return err
	}
	return w.gone("flush-local", target) // what was begun may have failed, and nobody holds the handle
}

// Shared returns target's part as ordinary memory, to be used like Local between synchronisations; ok is false where it
// is not mapped here, and while races are looked for. Unlike a View it says nothing about atomics. It must not be used
// after Free.
func (w *Window[T]) Shared(target int) (part []T, ok bool) {
	r := w.c.shared(target)
	return mem.Slice[T](r), r.Bytes != 0
}

func (w *core) shared(target int) mem.Range {
	if w.freed || w.strict() || w.race != nil || target < 0 || target >= len(w.remotes) {
		return mem.Range{}
	}
	return w.remotes[target].Mapped
}
