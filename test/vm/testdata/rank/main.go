// Command rank is a program for jobs over the NIC of a virtual machine: its first argument says what its ranks go through.
// It is started by the tests of package vm.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		number := func(i int) int {
			n, err := strconv.Atoi(os.Args[i])
			if err != nil {
				panic(err)
			}
			return n
		}
		switch os.Args[1] {
		case "hello":
			fmt.Printf("rank %d of %d over %s\n", w.Rank(), w.Size(), w.Transport((w.Rank()+1)%w.Size()))
			return w.Barrier(ctx)
		case "work":
			return work(ctx, w, time.Duration(number(2))*time.Millisecond, true)
		case "flow": // an atomic may end in doubt when a link fails; all else must not
			return work(ctx, w, time.Duration(number(2))*time.Millisecond, false)
		case "killed":
			return killed(ctx, w)
		case "churn":
			return churn(ctx, w, number(2))
		case "ping":
			return ping(ctx, w, number(2), number(3))
		case "create":
			return create(ctx, w, number(2))
		}
		return fmt.Errorf("no such part: %s", os.Args[1])
	})
}

// work puts, gets, adds and signals for a while, and checks all of it: whatever happens to the network meanwhile, nothing is
// lost or doubled.
func work(ctx context.Context, w *pgas.World, long time.Duration, atomics bool) error {
	const words = 4096
	win, err := window.Allocate[uint64](ctx, w.Team(), words*w.Size()+8)
	if err != nil {
		return err
	}
	sigs, err := pgsync.NewSignals(ctx, w.Team(), w.Size())
	if err != nil {
		return err
	}
	me, next := w.Rank(), (w.Rank()+1)%w.Size()
	before := (me + w.Size() - 1) % w.Size()
	out, back := make([]uint64, words), make([]uint64, words)
	counter := words * w.Size()
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	fmt.Printf("rank %d is at work\n", me)
	began := time.Now()
	round, ends := 0, false
	for ; !ends; round++ {
		for i := range out {
			out[i] = uint64(round)<<32 | uint64(me)<<16 | uint64(i)
		}
		if err := errors.Join(win.Put(next, words*me, out), sigs.Signal(me).Set(next, uint64(round)+1)); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if _, err := sigs.Signal(before).WaitUntil(ctx, pgsync.Equal, uint64(round)+1); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		for i, v := range win.Local()[words*before : words*before+words] {
			if v != uint64(round)<<32|uint64(before)<<16|uint64(i) {
				return fmt.Errorf("round %d: word %d is %#x though the signal has come", round, i, v)
			}
		}
		if err := win.Get(next, words*me, back); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if back[0] != out[0] || back[words-1] != out[words-1] {
			return fmt.Errorf("round %d: got %#x and %#x back", round, back[0], back[words-1])
		}
		for r := 0; atomics && r < w.Size(); r++ {
			if _, err := window.FetchXor(win, r, counter, uint64(1)<<(8*me+round%8)); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		vote := []uint64{0}
		if time.Since(began) > long {
			vote[0] = 1
		}
		if err := pgsync.AllReduce(ctx, w.Team(), vote, vote, pgsync.Max); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		ends = vote[0] != 0
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	var want uint64
	for r := 0; atomics && r < w.Size(); r++ {
		for i := range round {
			want ^= 1 << (8*r + i%8)
		}
	}
	if got := win.Local()[counter]; got != want {
		return fmt.Errorf("the ranks' xors are %#x, not %#x", got, want)
	}
	fmt.Printf("rank %d worked for %d rounds\n", me, round)
	return errors.Join(sigs.Free(ctx), win.Free(ctx))
}

// killed has the last rank die in the middle of transfers to it. The others are told in time, by an error that names it,
// and go on among themselves with all buffers they had.
func killed(ctx context.Context, w *pgas.World) error {
	victim := w.Size() - 1
	win, err := window.Allocate[uint64](ctx, w.Team(), 1<<16)
	if err != nil {
		return err
	}
	team, err := w.Team().Split(ctx, w.Rank()/victim, 0)
	if err != nil {
		return err
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	if w.Rank() == victim {
		time.Sleep(100 * time.Millisecond)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	big := make([]uint64, 1<<15)
	began := time.Now()
	var last time.Time
	for err == nil {
		last = time.Now()
		err = errors.Join(win.Put(victim, 0, big), win.Flush(victim), win.Get(victim, 0, big))
		if time.Since(began) > 30*time.Second {
			return errors.New("a dead rank takes puts")
		}
	}
	told := time.Since(last)
	var op *pgas.OpError
	switch {
	case !errors.Is(err, pgas.ErrPeerGone):
		return fmt.Errorf("wanted ErrPeerGone, got %w", err)
	case !errors.As(err, &op) || op.Rank != victim:
		return fmt.Errorf("the error does not name rank %d: %w", victim, err)
	case told > 5*time.Second:
		return fmt.Errorf("told after %v", told)
	}
	fmt.Printf("rank %d was told: %v\n", w.Rank(), err)
	other := team.WorldRank((team.Rank() + 1) % team.Size())
	for range 300 { // more than there are pieces and slots
		if err := win.Put(other, w.Rank()*100, big[:100]); err != nil {
			return err
		}
	}
	if err := errors.Join(win.Flush(other), team.Barrier(ctx)); err != nil {
		return err
	}
	fmt.Printf("rank %d goes on\n", w.Rank())
	if err := team.Barrier(ctx); err != nil {
		return err
	}
	time.Sleep(200 * time.Millisecond) // so that this rank's end is nobody's news
	os.Exit(0)
	return nil
}

// ping has each rank put so many bytes to its neighbour, flush, and get them back, n times, from and into the same buffers.
func ping(ctx context.Context, w *pgas.World, n, bytes int) error {
	win, err := window.Allocate[byte](ctx, w.Team(), bytes*w.Size())
	if err != nil {
		return err
	}
	next, at := (w.Rank()+1)%w.Size(), bytes*w.Rank()
	src, dst := pattern(w.Rank(), bytes), make([]byte, bytes)
	for i := range n {
		src[i%bytes]++
		if err := errors.Join(win.Put(next, at, src), win.Flush(next), win.Get(next, at, dst)); err != nil {
			return err
		}
		if string(src) != string(dst) {
			return fmt.Errorf("ping %d came back otherwise", i)
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	fmt.Printf("rank %d got %d answers\n", w.Rank(), n)
	return win.Free(ctx)
}

// create makes a window of more bytes than may be registered, which is registered in buckets then, and uses all of it.
func create(ctx context.Context, w *pgas.World, bytes int) error {
	local := make([]byte, bytes)
	win, err := window.Create(ctx, w.Team(), local)
	if err != nil {
		return err
	}
	next := (w.Rank() + 1) % w.Size()
	const part = 1000
	for at := 0; at+part <= bytes; at += bytes / 50 {
		src, dst := pattern(at, part), make([]byte, part)
		if err := errors.Join(win.Put(next, at, src), win.Flush(next), win.Get(next, at, dst)); err != nil {
			return fmt.Errorf("at byte %d: %w", at, err)
		}
		if string(src) != string(dst) {
			return fmt.Errorf("byte %d and those behind it came back otherwise", at)
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	pinned, _ := memory()
	fmt.Printf("rank %d reached all of %d bytes, %d KiB pinned\n", w.Rank(), bytes, pinned)
	return win.Free(ctx)
}

// pattern makes n bytes that tell where they belong.
func pattern(at, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte((at + i) * 7 >> 3)
	}
	return b
}
