package pgas

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/peers"
	pgsync "gopgas/sync"
)

// TestStopped: what a rank says of its end when a signal has ended it, or the others first.
func TestStopped(t *testing.T) {
	own := errors.New("its own")
	each := func(sig syscall.Signal) (bool, time.Duration) { return sig != 0, time.Minute }
	for _, c := range []struct {
		name   string
		sig    syscall.Signal // 0: none
		later  bool
		err    error
		silent bool
		meant  func(syscall.Signal) (bool, time.Duration)
	}{
		{"told to end", syscall.SIGTERM, false, context.Canceled, true, nil},
		{"told to end, and says so", syscall.SIGINT, false, context.Canceled, true, nil},
		{"the others have ended by the same", syscall.SIGINT, false, ErrPeerGone, true, onlyCtrlC},
		{"and were faster", syscall.SIGINT, true, ErrPeerGone, true, onlyCtrlC},
		{"another failed, so the launcher ends all", syscall.SIGTERM, true, ErrPeerGone, false, onlyCtrlC},
		{"all are told to end", syscall.SIGTERM, false, ErrPeerGone, true, each},
		{"and the others were faster", syscall.SIGTERM, true, ErrPeerGone, true, each},
		{"the others have left a call at a Ctrl-C", syscall.SIGINT, true, pgsync.ErrAbandoned, true, onlyCtrlC},
		{"or an exchange", syscall.SIGINT, true, fmt.Errorf("exchange: %w", pgsync.ErrAbandoned), true, onlyCtrlC},
		{"no signal", 0, false, ErrPeerGone, false, onlyCtrlC},
		{"its own failure", syscall.SIGINT, false, own, false, each},
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
			err := stopped(ctx, c.err, c.meant)
			if !c.silent {
				require.Equal(t, c.err, err)
				return
			}
			require.Equal(t, errSignal{c.sig}, err)
			require.Equal(t, 128+int(c.sig), exitCode(err))
		})
	}
}

// TestMeantForAll: which signals are for all ranks, by how the first that was lost has ended, and how long one waits where that is not known.
func TestMeantForAll(t *testing.T) {
	const none, intr, term = syscall.Signal(0), syscall.SIGINT, syscall.SIGTERM
	told := peers.Exited(143)
	for _, c := range []struct {
		name    string
		sig     syscall.Signal
		lost    bool
		cause   peers.Cause
		pgasrun bool
		yes     bool
		wait    time.Duration
	}{
		{"Ctrl-C", intr, true, peers.Exited(1), true, true, 0},
		{"all are told to end", term, true, told, true, true, 0},
		{"nobody is lost, but who is told to end has left a call", term, false, 0, true, true, 0},
		{"another failed", term, true, peers.Exited(1), true, false, 0},
		{"how it has ended is not known yet", term, true, peers.Silent, true, false, wordTime},
		{"nor ever will be", term, true, peers.Silent, false, false, signalTime},
		{"it was told to end, as this one will be", none, true, told, true, false, wordTime},
		{"no signal, and nothing is known yet", none, true, peers.Vanished, true, false, wordTime},
		{"nor ever will be, without a signal", none, true, peers.Vanished, false, false, signalTime},
		{"another failed, perhaps of a Ctrl-C", none, true, peers.Exited(1), true, false, signalTime},
		{"somebody has left a call", none, false, 0, true, false, signalTime},
	} {
		yes, wait := meantForAll(c.sig, c.lost, c.cause, c.pgasrun)
		require.Equal(t, c.yes, yes, c.name)
		require.Equal(t, c.wait, wait, c.name)
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
