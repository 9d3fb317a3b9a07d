package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport"
	"gopgas/window"
)

// TestPeekAtTheDying: a process that ends gives its memory back first, which takes a while where there is much, so who peeks at it knows of its end before anybody else does. The others
// are told who is gone, and not that the one who has found that has left.
func TestPeekAtTheDying(t *testing.T) {
	const ballast = 256 << 20
	_, out := pgastest.StartProcs(t, 3, pgastest.Procs{NoKill: true, Env: onOneNode.Env}, 1, func(ctx context.Context, w *pgas.World) error {
		pid, err := window.Allocate[int64](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := pid.Put(2, 0, []int64{int64(os.Getpid())}); err != nil {
				return err
			}
		}
		if err := pid.Fence(ctx); err != nil {
			return err
		}
		src, dst, much := make([]float64, 1<<20), make([]float64, 1<<20), []byte(nil)
		if w.Rank() == 0 {
			much = make([]byte, ballast)
			for i := 0; i < len(much); i += 4096 {
				much[i] = 1
			}
		}
		err = peekAt(ctx, w.Team(), src, dst, func() { much[0] = 2; os.Exit(7) }, func() {
			for readable(int(pid.Local()[0]), mem.Of(src)) {
				time.Sleep(10 * time.Microsecond)
			}
		})
		var gone *transport.OpError
		if !errors.Is(err, transport.ErrPeerGone) || !errors.As(err, &gone) || gone.Rank != 0 {
			fmt.Println("not the error of a peer that is gone:", err)
		} else {
			fmt.Println("told of rank", gone.Rank)
		}
		time.Sleep(300 * time.Millisecond) // this one's end is no news before
		os.Exit(0)
		return nil
	})
	require.Regexp(t, "(?m)^1: told of rank 0$", out)
	require.Regexp(t, "(?m)^2: told of rank 0$", out)
}

// readable reports whether a process has memory, at the address that r has here or another one.
func readable(pid int, r mem.Range) bool {
	var word [8]byte
	here, there := []unix.Iovec{{Base: &word[0], Len: 8}}, []unix.RemoteIovec{{Base: uintptr(r.Addr()), Len: 8}}
	_, err := unix.ProcessVMReadv(pid, here, there, 0)
	return !errors.Is(err, unix.ESRCH)
}
