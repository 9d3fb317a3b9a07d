package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// Large transfers: each rank has a lane in every part, into which it alone puts, and out of which it gets.
const (
	laneWords = 4 << 20 / 8
	rounds    = 5
	limit     = 5 * time.Second // within which ends are known
)

// crowd is what a rank has for them.
type crowd struct {
	w    *pgas.World
	win  *window.Window[uint64]
	team *pgsync.Team // of those that stay
	path string       // that all of it takes
}

// large has all ranks make large transfers over a path. The victim is killed when a transfer to it, and one of its own, are under way; or it leaves
// ("leave"). The others are told, and go on among themselves through the workspace that they have shared with it. stamp is the file that
// says when the victim ended.
func large(ctx context.Context, w *pgas.World, how, path, stamp string) error {
	if w.Rank() != victim {
		return survive(ctx, w, path, stamp)
	}
	c, err := meet(ctx, w, path)
	if err != nil {
		return err
	}
	if how == "leave" {
		return c.leave(ctx, stamp)
	}
	return c.die(stamp)
}

func meet(ctx context.Context, w *pgas.World, path string) (*crowd, error) {
	win, err := window.Allocate[uint64](ctx, w.Team(), laneWords*w.Size())
	if err != nil {
		return nil, err
	}
	color := 0
	if w.Rank() == victim {
		color = 1
	}
	team, err := w.Team().Split(ctx, color, 0)
	if err != nil {
		return nil, err
	}
	return &crowd{w, win, team, path}, w.Barrier(ctx)
}

// lane is where a rank's lane begins in every part.
func lane(rank int) int { return rank * laneWords }

// fill gives each word a value of its own.
func fill(b []uint64, rank, round int) []uint64 {
	for i := range b {
		b[i] = uint64(rank+1)<<56 | uint64(round)<<32 | uint64(i)
	}
	return b
}

// took returns how many transfers have taken the path.
func (c *crowd) took() (n uint64) {
	for _, paths := range c.w.Stats() {
		n += paths[c.path].Ops
	}
	return n
}

// die ends the victim as soon as a part of a put of rank 0 has landed here and the rest has not.
func (c *crowd) die(stamp string) error {
	for r := range c.w.Size() {
		if r != victim {
			go func() { // what is under way to others
				for src := fill(make([]uint64, laneWords), victim, 0); ; {
					_ = errors.Join(c.win.Put(r, lane(victim), src), c.win.Flush(r))
				}
			}()
		}
	}
	local := c.win.Local()
	first, last := &local[lane(0)], &local[lane(1)-1]
	for began := time.Now(); ; time.Sleep(20 * time.Microsecond) {
		if a, b := atomic.LoadUint64(first), atomic.LoadUint64(last); a>>32 != b>>32 && c.took() > 0 {
			break
		}
		if time.Since(began) > time.Minute {
			return errors.New("no transfer was seen under way")
		}
	}
	if err := os.WriteFile(stamp, []byte(strconv.FormatInt(time.Now().UnixNano(), 10)), 0o600); err != nil {
		return err
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// leave ends this rank's part of the world while transfers are under way: they end in an error, all of them, and soon.
func (c *crowd) leave(ctx context.Context, stamp string) error {
	come := &c.win.Local()[lane(0)] // rank 0 puts here behind a barrier of the others: before, somebody may be in the one that this rank has left
	for began := time.Now(); atomic.LoadUint64(come) == 0; time.Sleep(20 * time.Microsecond) {
		if time.Since(began) > time.Minute {
			return errors.New("nobody has put anything here")
		}
	}
	var under []window.Handle
	for range 2 {
		for r := range c.w.Size() {
			if r == victim {
				continue
			}
			put, err := c.win.PutNB(r, lane(victim), make([]uint64, laneWords))
			if err != nil {
				return err
			}
			get, err := c.win.GetNB(r, lane(r), make([]uint64, laneWords))
			if err != nil {
				return err
			}
			under = append(under, put, get)
		}
	}
	began := time.Now()
	if err := os.WriteFile(stamp, []byte(strconv.FormatInt(began.UnixNano(), 10)), 0o600); err != nil {
		return err
	}
	c.w.Fail(errors.New("out of luck"))
	ended := 0
	for _, h := range under {
		switch err := h.Wait(ctx); {
		case errors.Is(err, pgas.ErrClosed):
			ended++
		case err != nil:
			return fmt.Errorf("wanted ErrClosed: %w", err)
		}
	}
	if d := time.Since(began); ended == 0 || d > limit {
		return fmt.Errorf("%d of %d transfers were ended, after %v", ended, len(under), d)
	}
	fmt.Printf("rank %d ended its transfers\n", victim)
	os.Exit(1)
	return nil
}

func survive(ctx context.Context, w *pgas.World, path, stamp string) error {
	c, err := meet(ctx, w, path)
	if err != nil {
		return err
	}
	if err := c.impatient(ctx); err != nil {
		return err
	}
	if err := c.told(ctx, stamp); err != nil {
		return err
	}
	if err := c.goOn(ctx); err != nil {
		return err
	}
	leave(ctx)
	return nil
}

// impatient stops waiting for a transfer that goes on; the memory is the library's until it is over.
func (c *crowd) impatient(ctx context.Context) error {
	other := c.team.WorldRank((c.team.Rank() + 1) % c.team.Size())
	gone, cancel := context.WithCancel(ctx)
	cancel()
	src, back := make([]uint64, laneWords), make([]uint64, laneWords)
	for round, stopped := 1, false; !stopped; round++ {
		h, err := c.win.PutNB(other, lane(c.w.Rank()), fill(src, c.w.Rank(), round))
		if err != nil {
			return err
		}
		switch err := h.Wait(gone); {
		case errors.Is(err, context.Canceled):
			stopped = true
		case err != nil:
			return fmt.Errorf("wanted the end of the context: %w", err)
		case round == 100:
			return errors.New("no transfer was under way when it was waited for")
		}
		if err := errors.Join(h.Wait(ctx), c.win.Flush(other), c.win.Get(other, lane(c.w.Rank()), back)); err != nil {
			return err
		}
		for i := range back {
			if back[i] != src[i] {
				return fmt.Errorf("word %d is %#x after a wait that was ended, want %#x", i, back[i], src[i])
			}
		}
	}
	return c.team.Barrier(ctx)
}

// told transfers to the victim and from it until there is an error, and looks at that.
func (c *crowd) told(ctx context.Context, stamp string) error {
	src, back := make([]uint64, laneWords), make([]uint64, laneWords)
	var told error
	for began, round := time.Now(), 1; told == nil; round++ {
		get, err := c.win.GetNB(victim, lane(victim), back)
		put := c.win.Put(victim, lane(c.w.Rank()), fill(src, c.w.Rank(), round))
		for _, err := range []error{err, put, get.Wait(ctx), c.win.Flush(victim)} {
			var op *pgas.OpError
			switch {
			case err == nil:
			case !errors.Is(err, pgas.ErrPeerGone) || !errors.As(err, &op) || op.Rank != victim:
				return fmt.Errorf("wanted ErrPeerGone of rank %d, got %w", victim, err)
			default:
				told = err
			}
		}
		if time.Since(began) > time.Minute {
			return errors.New("a dead rank takes puts")
		}
	}
	now := time.Now()
	text, rerr := os.ReadFile(stamp)
	if rerr != nil {
		return rerr
	}
	at, rerr := strconv.ParseInt(string(text), 10, 64)
	if d := now.Sub(time.Unix(0, at)); rerr != nil || d > limit {
		return fmt.Errorf("told after %v: %w", d, errors.Join(rerr, told))
	}
	fmt.Printf("rank %d was told: %v\n", c.w.Rank(), told)
	return c.team.Barrier(ctx)
}

// goOn transfers to the other survivors, several times at once, and looks at all that has come.
func (c *crowd) goOn(ctx context.Context) error {
	me, half := c.w.Rank(), laneWords/2
	before := c.took()
	for round := 1; round <= rounds; round++ {
		src := fill(make([]uint64, laneWords), me, 100+round)
		var under []window.Handle
		for i := range c.team.Size() {
			r := c.team.WorldRank(i)
			if r == me {
				continue
			}
			for _, at := range []int{0, half} {
				h, err := c.win.PutNB(r, lane(me)+at, src[at:at+half])
				if err != nil {
					return err
				}
				under = append(under, h)
			}
		}
		for _, h := range under {
			if err := h.Wait(ctx); err != nil {
				return err
			}
		}
		for i := range c.team.Size() {
			if err := c.win.Flush(c.team.WorldRank(i)); err != nil {
				return err
			}
		}
		if err := c.team.Barrier(ctx); err != nil {
			return err
		}
		for i := range c.team.Size() {
			r := c.team.WorldRank(i)
			for k, v := range c.win.Local()[lane(r):lane(r+1)] {
				if want := uint64(r+1)<<56 | uint64(100+round)<<32 | uint64(k); r != me && v != want {
					return fmt.Errorf("round %d: word %d of rank %d is %#x, want %#x", round, k, r, v, want)
				}
			}
		}
		if err := c.team.Barrier(ctx); err != nil {
			return err
		}
	}
	if n := c.took() - before; n < rounds {
		return fmt.Errorf("%d transfers among those that are left took the path %s: %v", n, c.path, c.w.Stats())
	}
	fmt.Printf("rank %d goes on\n", me)
	return nil
}
