package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
)

// waitSide is what the sleeper uses.
type waitSide struct {
	mu    sync.Mutex      // held while one sleeps
	asked bool            // the device was asked for an event, and has told of none since; under mu
	woken atomic.Bool     // Wake was called and no Wait has taken it
	ends  <-chan struct{} // the Done of the ctx whose end ends sleeps; under mu
	stop  func() bool     // has it end none; under mu
}

// forget has no ctx end sleeps. Called with mu.
func (w *waitSide) forget() {
	if w.stop != nil {
		w.stop()
	}
	w.ends, w.stop = nil, nil
}

// longAgo as a deadline ends a read that sleeps.
func longAgo() time.Time { return time.Unix(1, 0) }

// openFiles duplicates the device's descriptors for Go's poller; the library closes its own.
func (d *domain) openFiles() error {
	for _, f := range []struct {
		fd   int32
		file **os.File
		name string
	}{
		{d.nic.ChannelFD, &d.channel, "completion channel"},
		{d.nic.AsyncFD, &d.async, "asynchronous events"},
	} {
		fd, err := syscall.Dup(int(f.fd))
		if err != nil {
			return fmt.Errorf("duplicate the descriptor of the %s: %w", f.name, err)
		}
		syscall.CloseOnExec(fd)
		if err := syscall.SetNonblock(fd, true); err != nil { // both descriptors: they are one open file
			syscall.Close(fd)
			return fmt.Errorf("the %s does not stop blocking: %w", f.name, err)
		}
		*f.file = os.NewFile(uintptr(fd), f.name)
	}
	return nil
}

// Wait sleeps on the completion channel until there may be something to poll. It arms the completion queue, looks
// once more, and only then sleeps, so nothing is missed.
func (d *domain) Wait(ctx context.Context) error {
	_, err := d.waitUntil(ctx, time.Time{}, false)
	return err
}

// WaitSolicited is Wait for what peers have sent, for so long at most, and reports whether there may be some, or Wake was called. The end of an
// operation of this rank's own may end it too, as where the device was asked for that before. What the device was asked for stays asked for until
// it tells: who sleeps again after a limit crosses into it no more than to look whether it has.
func (d *domain) WaitSolicited(ctx context.Context, limit time.Duration) (some bool, err error) {
	return d.waitUntil(ctx, time.Now().Add(limit), true)
}

// waitUntil sleeps for what the device is to tell, until a time if there is one, and reports whether it has told, or Wake was called.
func (d *domain) waitUntil(ctx context.Context, until time.Time, solicited bool) (told bool, err error) {
	d.wait.mu.Lock()
	defer d.wait.mu.Unlock()
	if d.closed.Load() {
		return false, transport.ErrClosed
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err := d.channel.SetReadDeadline(until); err != nil {
		return false, fmt.Errorf("verbs: wait: %w", err)
	}
	// From here on Wake ends the sleep, and so does the end of ctx; what they have said before is in woken and in ctx.
	if d.wait.woken.Swap(false) {
		return true, nil
	}
	d.endWith(ctx)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if !solicited || !d.wait.asked {
		if some, err := d.arm(solicited); some || err != nil {
			return some, err
		}
		d.wait.asked = true
	}
	err = d.sleep(d.channel, func() (bool, error) { return ibv.TakeEvent(&d.nic) })
	told = d.wait.woken.Swap(false)
	switch {
	case d.closed.Load():
		return told, transport.ErrClosed
	case ctx.Err() != nil:
		return told, context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return told, nil
	case err != nil:
		return told, fmt.Errorf("verbs: wait for the completion channel: %w", err)
	}
	d.wait.asked = false
	return true, nil
}

// endWith has the end of ctx end sleeps. It stays so for the next Wait, which has the same ctx as a rule: to begin and end it each time
// allocates. Called with wait.mu.
func (d *domain) endWith(ctx context.Context) {
	if d.wait.ends == ctx.Done() {
		return
	}
	d.wait.forget()
	if d.wait.ends = ctx.Done(); d.wait.ends != nil {
		d.wait.stop = context.AfterFunc(ctx, d.kick)
	}
}

// arm asks for an event at the next completion, or the next that was solicited, and reports whether there is something to poll already.
func (d *domain) arm(solicited bool) (bool, error) {
	d.poll.mu.Lock()
	defer d.poll.mu.Unlock()
	if d.closed.Load() {
		return true, nil
	}
	if len(d.poll.ready) == 0 && !d.poll.anyFresh() && d.news.count.Load() == 0 {
		if err := ibv.Arm(&d.nic, solicited); err != nil {
			return false, fmt.Errorf("verbs: arm the completion queue: %w", err)
		}
		d.harvestLocked()
	}
	return len(d.poll.ready) > 0 || d.poll.anyFresh() || d.news.count.Load() > 0, nil
}

// sleep waits in Go's poller until take has got something.
func (d *domain) sleep(f *os.File, take func() (bool, error)) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Read(func(uintptr) bool {
		var ok bool
		ok, failed = take()
		return ok || failed != nil
	}); err != nil {
		return err
	}
	return failed
}

// Wake ends the current or the next Wait. It may be called at any time.
func (d *domain) Wake() {
	d.wait.woken.Store(true)
	d.kick()
}

func (d *domain) kick() {
	// The file is closed when the domain is, and then nobody sleeps.
	_ = d.channel.SetReadDeadline(longAgo())
}
