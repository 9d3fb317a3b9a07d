// Command rank is a program with one rank that fails in the way its first argument names, and others that do what the
// second says and must be told; with a third one, a file, the second is a path of large transfers. It is started by the tests of package failure.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// victim is the rank that fails.
const victim = 2

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		if len(os.Args) == 4 {
			return large(ctx, w, os.Args[1], os.Args[2], os.Args[3])
		}
		lock, err := pgsync.NewLock(ctx, w.Team())
		if err != nil {
			return err
		}
		sig, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		win, err := window.Allocate[int64](ctx, w.Team(), 8)
		if err != nil {
			return err
		}
		how, wait := os.Args[1], os.Args[2]
		if w.Rank() == victim {
			if wait == "lock" {
				if err := lock.Lock(ctx); err != nil {
					return err
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			time.Sleep(50 * time.Millisecond) // the others are in their wait by now
			for r := range w.Size() {
				if err := errors.Join(win.Put(r, 0, []int64{time.Now().UnixNano()}), win.Flush(r)); err != nil {
					return err
				}
			}
			return fail(ctx, w, how)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		switch wait {
		case "barrier":
			err = w.Barrier(ctx)
		case "lock":
			err = lock.Lock(ctx)
		case "signal":
			_, err = sig.Signal(0).WaitUntil(ctx, pgsync.Equal, 1)
		case "broadcast":
			err = pgsync.Broadcast(ctx, w.Team(), make([]int64, 8), victim)
		case "fence":
			err = win.Fence(ctx)
		case "allocate":
			_, err = window.Allocate[int64](ctx, w.Team(), 1<<20)
		}
		took := time.Since(time.Unix(0, win.Local()[0])) // from the victim's last act
		var op *pgas.OpError
		switch {
		case !errors.Is(err, pgas.ErrPeerGone):
			return fmt.Errorf("%s: wanted ErrPeerGone, got %v", wait, err)
		case !errors.As(err, &op):
			return fmt.Errorf("%s: no OpError: %v", wait, err)
		case took > time.Second:
			return fmt.Errorf("%s: told after %v", wait, took)
		}
		fmt.Printf("rank %d was told: %v\n", w.Rank(), err)
		leave(ctx)
		return nil
	})
}

// leave ends a rank that was told, once the test has seen that all were and that the launcher has named the victim: else this rank's end could
// be the news that another one gets, or the first that the launcher gets. The test says so by making a file; where it does not, this rank gives the
// others a moment.
func leave(ctx context.Context) {
	file, patience := os.Getenv("LEAVE_FILE"), 10*time.Second
	if file == "" {
		patience = 300 * time.Millisecond
	}
	for end := time.Now().Add(patience); ctx.Err() == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			break
		}
	}
	os.Exit(0)
}

// fail ends the victim, or makes it useless.
func fail(ctx context.Context, w *pgas.World, how string) error {
	switch how {
	case "exit":
		os.Exit(3)
	case "goexit":
		runtime.Goexit()
	case "error":
		return errors.New("out of luck")
	case "panic":
		panic("out of luck")
	case "segv":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "abort":
		w.Abort(7, "out of luck")
	case "hang":
		<-ctx.Done()
		return context.Cause(ctx)
	}
	select {}
}
