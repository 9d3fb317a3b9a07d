package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/window"
)

// onOneNode is how ranks are started that map each other's memory, whatever the environment of the tests says.
var onOneNode = pgastest.Procs{Env: []string{"PGAS_LOCAL=on"}}

// TestPeeks: long calls of Go memory between processes are right whichever way they go, are read where it lies at first, and go both ways at times.
func TestPeeks(t *testing.T) {
	pgastest.RunProcsConfig(t, 3, onOneNode, func(ctx context.Context, w *pgas.World) error {
		o := newOffered(w.Team())
		before := w.Team().Barriers()
		if err := o.gather(ctx, w.Team(), 1); err != nil {
			return err
		}
		if turns := w.Team().Barriers() - before; turns != 2 {
			return fmt.Errorf("the first gather takes %d turns, not 2", turns)
		}
		rounds := 30
		if testing.Short() {
			rounds = 6
		}
		for seed := range rounds {
			if err := o.calls(ctx, w.Team(), seed); err != nil {
				return err
			}
			started := w.Team().Start(func(ctx context.Context, t *pgsync.Team) error { return o.calls(ctx, t, seed+100) })
			if err := started.Wait(ctx); err != nil {
				return err
			}
		}
		moved := w.Stats()["shm"]["kernel"].Bytes
		if least := uint64(rounds / 2 * 2 * 8 * offeredElems); moved < least {
			return fmt.Errorf("the kernel has copied %d bytes, not %d and more", moved, least)
		}
		return nil
	})
}

// TestPeeksBesideWindows: of some members Go memory is offered, of others a window's, of others what lies on a stack and is not.
func TestPeeksBesideWindows(t *testing.T) {
	pgastest.RunProcsConfig(t, 3, onOneNode, func(ctx context.Context, w *pgas.World) error {
		const n = 4 << 10
		win, err := window.Allocate[float64](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		all := make([]float64, n*w.Size())
		for round := range 12 {
			var onStack [n]float64
			src := [][]float64{win.Local(), make([]float64, n), onStack[:]}[(w.Rank()+round)%(2+round%2)]
			for i := range src {
				src[i] = given(round, w.Rank(), i)
			}
			if err := pgsync.AllGather(ctx, w.Team(), all, src); err != nil {
				return err
			}
			for i, v := range all {
				if v != given(round, i/n, i%n) {
					return fmt.Errorf("round %d: element %d is %v", round, i, v)
				}
			}
		}
		return nil
	})
}

// TestPeeksRefused: where the kernel lets one member not read the others' memory, calls go through outboxes.
func TestPeeksRefused(t *testing.T) {
	pgastest.RunProcsConfig(t, 3, onOneNode, func(ctx context.Context, w *pgas.World) error {
		if w.Rank() == 1 {
			if err := forbid(unix.SYS_PROCESS_VM_READV); err != nil {
				return err
			}
		}
		o := newOffered(w.Team())
		for seed := range 3 {
			if err := o.calls(ctx, w.Team(), seed); err != nil {
				return err
			}
		}
		if moved := w.Stats()["shm"]["kernel"].Bytes; moved != 0 {
			return fmt.Errorf("the kernel has copied %d bytes", moved)
		}
		return nil
	})
}

// forbid has the kernel refuse a system call to this process.
func forbid(call uint32) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	deny := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(deny)), Filter: &deny[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}

// peekAt has the last member read what 0 has, Go memory, and calls offered on that one when it has offered, before on this one before it reads.
func peekAt(ctx context.Context, team *pgsync.Team, src, dst []float64, offered, before func()) error {
	c, err := team.Collective(ctx, "gather")
	if err != nil {
		return err
	}
	bytes, reader := 8*len(src), team.Rank() == team.Size()-1
	done, err := c.Offered(ctx, 8, len(src), 0, bytes, c.Part(true), nil, mem.Of(src), mem.Of(dst), func(m int) (from, to, n int) {
		switch {
		case team.Rank() == 0:
			offered()
		case reader && m == 0:
			before()
			return 0, 0, bytes
		}
		return 0, 0, 0
	})
	if err == nil && !done {
		err = errors.New("nothing was offered")
	}
	return c.End(err)
}

// TestPeekBehindTheEnd: a member that peeks at one who has left the call meanwhile, and whose memory is anything by now, or no more there, does not take that for the result.
func TestPeekBehindTheEnd(t *testing.T) {
	for _, unmapped := range []bool{false, true} {
		t.Run(fmt.Sprintf("unmapped %v", unmapped), func(t *testing.T) {
			pgastest.RunProcsConfig(t, 2, onOneNode, func(ctx context.Context, w *pgas.World) error {
				left, err := window.Allocate[int64](ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				team, err := w.Team().Split(ctx, 0, 0)
				if err != nil {
					return err
				}
				src, dst := make([]float64, 1<<20), make([]float64, 1<<20)
				if w.Rank() == 0 {
					short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
					defer cancel()
					if err := peekAt(short, team, src, dst, func() {}, nil); !errors.Is(err, context.DeadlineExceeded) {
						return fmt.Errorf("left with %w", err)
					}
					if unmapped { // as the collector does in the end
						if err := unix.Mprotect(mem.Of(src).Slice(1<<20, 1<<20).Data(), unix.PROT_NONE); err != nil {
							return err
						}
						defer func() { _ = unix.Mprotect(mem.Of(src).Slice(1<<20, 1<<20).Data(), unix.PROT_READ|unix.PROT_WRITE) }()
					}
					if err := left.Put(1, 0, []int64{1}); err != nil {
						return err
					}
					return w.Team().Barrier(ctx)
				}
				err = peekAt(ctx, team, src, dst, nil, func() {
					for left.Local()[0] == 0 {
						time.Sleep(time.Millisecond)
					}
				})
				if !errors.Is(err, pgsync.ErrAbandoned) {
					return fmt.Errorf("read with %w", err)
				}
				return w.Team().Barrier(ctx)
			})
		})
	}
}

// lives reports whether a process has not ended; its parent may not have looked yet.
func lives(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !strings.Contains(string(status), "State:\tZ")
}

// TestPeekAtTheDead: a member whose process has ended when it is peeked at is gone, and named.
func TestPeekAtTheDead(t *testing.T) {
	_, out := pgastest.StartProcs(t, 2, pgastest.Procs{NoKill: true, Env: onOneNode.Env}, 1, func(ctx context.Context, w *pgas.World) error {
		pid, err := window.Allocate[int64](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := pid.Put(1, 0, []int64{int64(os.Getpid())}); err != nil {
				return err
			}
		}
		if err := pid.Fence(ctx); err != nil {
			return err
		}
		src, dst := make([]float64, 1<<20), make([]float64, 1<<20)
		err = peekAt(ctx, w.Team(), src, dst, func() { os.Exit(7) }, func() {
			for lives(int(pid.Local()[0])) {
				time.Sleep(time.Millisecond)
			}
		})
		var gone *transport.OpError
		if !errors.Is(err, transport.ErrPeerGone) || !errors.As(err, &gone) || gone.Rank != 0 {
			return fmt.Errorf("not the error of a peer that is gone: %w", err)
		}
		fmt.Println("told of rank", gone.Rank)
		os.Exit(0)
		return nil
	})
	require.Contains(t, out, "exited with 7")
	require.Regexp(t, "(?m)^1: told of rank 0$", out)
}
