package pgas

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"gopgas/internal/peers"
)

// errSignal is the cause of Main's context when a signal ended it.
type errSignal struct{ sig syscall.Signal }

func (e errSignal) Error() string { return "signal: " + e.sig.String() }

// Main is a whole program: it joins the job, calls f, leaves the job, and exits. An error of f, or of joining or
// leaving, is printed with the rank and ends the rank with exit code 1; the others learn of it at once. SIGINT and
// SIGTERM end f's context; when f returns for that reason the exit code is 128 plus the signal.
func Main(f func(ctx context.Context, w *World) error) {
	os.Exit(run(f))
}

func run(f func(ctx context.Context, w *World) error) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		s := <-signals
		signal.Stop(signals) // a second one ends the process
		cancel(errSignal{s.(syscall.Signal)})
	}()
	w, err := Init(ctx, nil)
	if err != nil {
		if err = stopped(ctx, err); !errors.As(err, new(errSignal)) {
			fmt.Fprintf(os.Stderr, "pgas: %v\n", err)
		}
		return exitCode(err)
	}
	if err = f(ctx, w); err == nil {
		err = w.Close(ctx)
	}
	if err == nil {
		return 0
	}
	err = stopped(ctx, err)
	code := exitCode(err)
	if errors.Is(err, flag.ErrHelp) {
		code = 0 // the usage was printed by package flag
	} else if !errors.As(err, new(errSignal)) {
		fmt.Fprintf(os.Stderr, "pgas: rank %d: %v\n", w.Rank(), err)
	}
	w.leaveAlone(peers.Exited(code)) // and no farewell to the launcher, which takes that for a failure
	return code
}

// stopped returns the signal that ended ctx, where err says no more than that it has ended.
func stopped(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), new(errSignal)) {
		return context.Cause(ctx)
	}
	return err
}

func exitCode(err error) int {
	var s errSignal
	if errors.As(err, &s) {
		return 128 + int(s.sig)
	}
	return 1
}
