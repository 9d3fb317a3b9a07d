package pgas

import (
	"context"
	"errors"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStopped: what a rank says of its end when a signal has ended it, or the others first.
func TestStopped(t *testing.T) {
	own := errors.New("its own")
	each := func(syscall.Signal) bool { return true }
	for _, c := range []struct {
		name     string
		sig      syscall.Signal // 0: none
		later    bool
		err      error
		patience time.Duration
		silent   bool
		toAll    func(syscall.Signal) bool
	}{
		{"told to end", syscall.SIGTERM, false, context.Canceled, 0, true, nil},
		{"told to end, and says so", syscall.SIGINT, false, context.Canceled, time.Minute, true, nil},
		{"the others have ended by the same", syscall.SIGINT, false, ErrPeerGone, time.Minute, true, onlyCtrlC},
		{"and were faster", syscall.SIGINT, true, ErrPeerGone, time.Minute, true, onlyCtrlC},
		{"another failed, so the launcher ends all", syscall.SIGTERM, true, ErrPeerGone, time.Minute, false, onlyCtrlC},
		{"all are told to end", syscall.SIGTERM, false, ErrPeerGone, time.Minute, true, each},
		{"and the others were faster", syscall.SIGTERM, true, ErrPeerGone, time.Minute, true, each},
		{"no signal", 0, false, ErrPeerGone, time.Millisecond, false, each},
		{"its own failure", syscall.SIGINT, false, own, 0, false, each},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			end := func() { cancel(errSignal{c.sig}) }
			switch {
			case c.sig == 0:
			case c.later:
				time.AfterFunc(time.Millisecond, end)
			default:
				end()
			}
			err := stopped(ctx, c.err, c.patience, c.toAll)
			if !c.silent {
				require.Equal(t, c.err, err)
				return
			}
			require.Equal(t, errSignal{c.sig}, err)
			require.Equal(t, 128+int(c.sig), exitCode(err))
		})
	}
}

// TestUnwinding: a deferred call knows what runs it. Only runtime.Goexit would leave a rank without an end.
func TestUnwinding(t *testing.T) {
	for _, c := range []struct {
		name, want string
		f          func()
	}{
		{"return", "", func() {}},
		{"Goexit", "runtime.Goexit", runtime.Goexit},
		{"Goexit far below", "runtime.Goexit", func() { func() { defer func() {}(); runtime.Goexit() }() }},
		{"panic", "runtime.gopanic", func() { panic("boom") }},
		{"a failure of the program", "runtime.gopanic", func() { var none []int; none[len(none)]++ }},
		{"a panic in a call that Goexit runs", "runtime.gopanic", func() { defer panic("boom"); runtime.Goexit() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make(chan string, 1)
			go func() {
				defer func() { _ = recover() }()
				defer func() { got <- unwinding() }()
				c.f()
			}()
			require.Equal(t, c.want, <-got)
		})
	}
}
