package pgas

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"gopgas/bootstrap"
	"gopgas/internal/peers"
	pgsync "gopgas/sync"
)

// errSignal is the cause of Main's context when a signal ended it.
type errSignal struct{ sig syscall.Signal }

func (e errSignal) Error() string { return "signal: " + e.sig.String() }

// Main is a whole program: it joins the job, calls f, leaves the job, and exits. An error of f, or of joining or
// leaving, is printed with the rank and ends the rank with exit code 1; the others learn of it at once. So does runtime.Goexit in f. SIGINT and
// SIGTERM end f's context; when f returns for that reason the exit code is 128 plus the signal. A second one ends the
// process at once, but for a SIGTERM after a SIGINT. A SIGINT that was ignored when the process was started, as of what a
// shell without job control runs in its background, stays so.
func Main(f func(ctx context.Context, w *World) error) {
	os.Exit(run(f))
}

func run(f func(ctx context.Context, w *World) error) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	go heed(cancel, notify(syscall.SIGINT), notify(syscall.SIGTERM))
	w, err := Init(ctx, nil)
	if err != nil {
		if err = stopped(ctx, err, onlyCtrlC); !errors.As(err, new(errSignal)) {
			fmt.Fprintf(os.Stderr, "pgas: %v\n", err)
		}
		return exitCode(err)
	}
	if err = whole(ctx, w, f); err == nil {
		err = w.Close(ctx)
	}
	if err == nil {
		return 0
	}
	return failed(ctx, w, err)
}

func notify(sig os.Signal) chan os.Signal {
	c := make(chan os.Signal, 1)
	if sig == syscall.SIGINT && signal.Ignored(sig) { // a Ctrl-C is for what runs in the foreground; SIGTERM is the launcher's own word
		return c
	}
	signal.Notify(c, sig)
	return c
}

// heed has the first SIGINT or SIGTERM end f's context, and a second one the process. A SIGTERM after the first SIGINT is no second one: Ctrl-C goes to all
// ranks, and when one of them has ended of it the launcher sends that to the others, which may still be at what they do at their end.
func heed(cancel context.CancelCauseFunc, interrupts, terms chan os.Signal) {
	select {
	case <-interrupts:
		signal.Stop(interrupts)
		cancel(errSignal{syscall.SIGINT})
		<-terms
	case <-terms:
		signal.Stop(interrupts)
		cancel(errSignal{syscall.SIGTERM})
	}
	signal.Stop(terms)
}

// whole calls f, which may end its goroutine by runtime.Goexit. Nobody would come back to end the rank then, and the others would wait for it.
func whole(ctx context.Context, w *World, f func(context.Context, *World) error) error {
	defer func() {
		if unwinding() == "runtime.Goexit" {
			os.Exit(failed(ctx, w, errGoexit))
		}
	}()
	return f(ctx, w)
}

// errGoexit is a rank's failure when its program's function did not return.
var errGoexit = errors.New("the function given to Main ended by runtime.Goexit; it must return, with an error if it has failed")

// unwinding is what runs deferred calls of its caller's: the name of runtime.Goexit, or of what handles a panic, which goes on to end the
// process by itself, with its own words; empty after a return.
func unwinding() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])]) // without Callers, this function and the deferred one
	frame, _ := frames.Next()
	switch frame.Function {
	case "runtime.Goexit", "runtime.gopanic":
		return frame.Function
	}
	return ""
}

// failed says what has ended a rank, tells the others and returns the exit code.
func failed(ctx context.Context, w *World, err error) int {
	err = stopped(ctx, err, w.meant)
	code := exitCode(err)
	if errors.Is(err, flag.ErrHelp) {
		code = 0 // the usage was printed by package flag
	} else if !errors.As(err, new(errSignal)) {
		fmt.Fprintf(os.Stderr, "pgas: rank %d: %v\n", w.Rank(), err)
	}
	w.leaveAlone(peers.Exited(code)) // and no farewell to the launcher, which takes that for a failure
	return code
}

// Ctrl-C, and a SIGTERM of who ends the job, go to all ranks, but a rank may notice first that others have ended of it. So one that has lost others waits.
const (
	signalTime = 50 * time.Millisecond // for a signal
	wordTime   = time.Second           // where pgasrun is to tell how they have ended, or has said that a signal did: on a busy machine it takes its time
)

// stopped returns the signal that ended ctx, where err says no more than that it has ended, or that others have who may have ended of the same one. Then meant says
// whether a signal, or none that has come so far (0), is what has ended them, and if not, how long after the failure that may still turn out.
func stopped(ctx context.Context, err error, meant func(syscall.Signal) (yes bool, wait time.Duration)) error {
	var s errSignal
	if errors.Is(err, context.Canceled) {
		if errors.As(context.Cause(ctx), &s) {
			return s
		}
		return err
	}
	if !errors.Is(err, ErrPeerGone) && !errors.Is(err, pgsync.ErrAbandoned) {
		return err
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		errors.As(context.Cause(ctx), &s)
		switch yes, wait := meant(s.sig); {
		case yes:
			return s
		case time.Since(began) >= wait:
			return err
		}
	}
}

// meant is what stopped asks.
func (w *World) meant(sig syscall.Signal) (yes bool, wait time.Duration) {
	first, cause := w.engine.Peers.FirstLost()
	return meantForAll(sig, first >= 0, cause, w.job.Launcher() == bootstrap.LauncherPgasrun)
}

// meantForAll is meant, where some rank is lost, if it is known which was first, for that one's cause. A SIGINT goes to all. So does a SIGTERM of who ends the job, but the launcher's own
// goes to those whom another rank's failure has left behind: it is that one's end that they are to tell of then. A NIC may be faster than the launcher, and
// cannot say how a rank has ended.
func meantForAll(sig syscall.Signal, lost bool, cause peers.Cause, pgasrun bool) (yes bool, wait time.Duration) {
	ended := func(of syscall.Signal) bool { return cause == peers.Exited(exitCode(errSignal{of})) }
	switch unknown := cause == peers.Silent || cause == peers.Vanished; {
	case sig == syscall.SIGINT || sig == syscall.SIGTERM && (!lost || ended(sig)):
		return true, 0
	case lost && pgasrun && (unknown || sig == 0 && (ended(syscall.SIGINT) || ended(syscall.SIGTERM))):
		return false, wordTime
	case sig == 0 || unknown:
		return false, signalTime
	}
	return false, 0
}

// onlyCtrlC is meant of a rank that has no world yet.
func onlyCtrlC(sig syscall.Signal) (yes bool, wait time.Duration) {
	return sig == syscall.SIGINT, signalTime
}

func exitCode(err error) int {
	var s errSignal
	if errors.As(err, &s) {
		return 128 + int(s.sig)
	}
	return 1
}
