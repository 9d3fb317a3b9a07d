package window

import (
	"gopgas/internal/mem"
	pgsync "gopgas/sync"
)

// PutSignal puts src and then sets target's signal to v: whoever sees the signal sees the data. It does not wait. Where the put fails, or one before it of which nobody was told, there is
// no signal either, and the next flush tells.
// The signal belongs to a set of the window's team, or of one in which target has the same number.
func (w *Window[T]) PutSignal(target, disp int, src []T, sig pgsync.Signal, v uint64) error {
	if err := w.c.putBefore(target, disp, len(src), mem.Of(src), sig); err != nil {
		return err
	}
	return sig.Set(target, v)
}

// PutSignalAdd is PutSignal that adds v to the target's signal instead of setting it, so that several ranks can count
// on one signal.
func (w *Window[T]) PutSignalAdd(target, disp int, src []T, sig pgsync.Signal, v uint64) error {
	if err := w.c.putBefore(target, disp, len(src), mem.Of(src), sig); err != nil {
		return err
	}
	return sig.Add(target, v)
}

// GetSignal gets as Get does and then sets target's signal to v: whoever sees the signal knows that dst has what was there, and that it may be
// written over. On return dst is there, and the signal on its way. (GASPI's gaspi_read_notify, which tells the reader; here the owner is told.) The signal
// belongs to a set of the window's team, or of one in which target has the same number.
func (w *Window[T]) GetSignal(target, disp int, dst []T, sig pgsync.Signal, v uint64) error {
	if err := w.getBefore(target, disp, dst, sig); err != nil {
		return err
	}
	return sig.Set(target, v)
}

// GetSignalAdd is GetSignal that adds v to the target's signal instead of setting it, so that the owner can count who has read.
func (w *Window[T]) GetSignalAdd(target, disp int, dst []T, sig pgsync.Signal, v uint64) error {
	if err := w.getBefore(target, disp, dst, sig); err != nil {
		return err
	}
	return sig.Add(target, v)
}

// getBefore is the get before a signal, which begins only where the signal can follow.
func (w *Window[T]) getBefore(target, disp int, dst []T, sig pgsync.Signal) error {
	if err := w.c.signals("get-signal", target, disp, len(dst), sig); err != nil {
		return err
	}
	return w.Get(target, disp, dst)
}

// putBefore is the put before a signal, which begins only where the signal can follow.
func (w *core) putBefore(target, disp, n int, src mem.Range, sig pgsync.Signal) error {
	const op = "put-signal"
	if err := w.signals(op, target, disp, n, sig); err != nil {
		return err
	}
	src, err := w.putting(op, target, disp, n, src)
	if err != nil || n == 0 {
		return err
	}
	return w.e.PutShown(op, &w.remotes[target], disp*w.elem.Bytes, src)
}

// signals returns why neither a transfer nor the signal behind it can be.
func (w *core) signals(op string, target, disp, n int, sig pgsync.Signal) error {
	if err := w.check(op, target, disp, n); err != nil {
		return err
	}
	return sig.Check(target, w.remotes[target].Rank)
}
