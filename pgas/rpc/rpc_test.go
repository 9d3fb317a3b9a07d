package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
	pgsync "gopgas/sync"
	"gopgas/window"
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

type point struct{ X, Y int32 }

type note struct {
	Title string
	Lines []string
	Marks map[string]int
}

// TestCallsOfEveryType: arguments and results of every kind come as they were, between all pairs.
func TestCallsOfEveryType(t *testing.T) {
	pgastest.Each(t, []int{1, 2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		number := rpc.HandleInTurn(s, "number", func(_ context.Context, from int, x int) (int, error) { return 100*x + from, nil })
		flip := rpc.Handle(s, "flip", func(_ context.Context, _ int, p point) (point, error) { return point{p.Y, p.X}, nil })
		upper := rpc.Handle(s, "upper", func(_ context.Context, _ int, x string) (string, error) { return strings.ToUpper(x), nil })
		double := rpc.HandleInTurn(s, "double", func(_ context.Context, _ int, x []float64) ([]float64, error) {
			for i := range x {
				x[i] *= 2
			}
			return x, nil
		})
		index := rpc.Handle(s, "index", func(_ context.Context, from int, n note) (note, error) {
			n.Marks = map[string]int{"from": from, "lines": len(n.Lines)}
			return n, nil
		})
		nothing := rpc.Handle(s, "nothing", func(context.Context, int, struct{}) (struct{}, error) { return struct{}{}, nil })
		if err := s.Start(ctx); err != nil {
			return err
		}
		for m := range w.Size() {
			n, err := number.Call(ctx, m, 7)
			require.NoError(t, err)
			require.Equal(t, 700+w.Rank(), n)
			p, err := flip.Call(ctx, m, point{1, 2})
			require.NoError(t, err)
			require.Equal(t, point{2, 1}, p)
			for _, x := range []string{"", "gopher", strings.Repeat("x", 100_000)} {
				u, err := upper.Call(ctx, m, x)
				require.NoError(t, err)
				require.Equal(t, strings.ToUpper(x), u)
			}
			d, err := double.Call(ctx, m, []float64{1, 2.5})
			require.NoError(t, err)
			require.Equal(t, []float64{2, 5}, d)
			d, err = double.Call(ctx, m, nil)
			require.NoError(t, err)
			require.Empty(t, d)
			have, err := index.Call(ctx, m, note{Title: "a", Lines: []string{"x", "y"}})
			require.NoError(t, err)
			require.Equal(t, note{Title: "a", Lines: []string{"x", "y"}, Marks: map[string]int{"from": w.Rank(), "lines": 2}}, have)
			_, err = nothing.Call(ctx, m, struct{}{})
			require.NoError(t, err)
		}
		return s.Close(ctx)
	})
}

// TestMessagesInOrder: messages of a member are performed in the order in which it has sent them, and functions in turn need no lock; Quiesce waits for all of them.
func TestMessagesInOrder(t *testing.T) {
	pgastest.Each(t, []int{1, 2, 4}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const each = 500
		s := rpc.New(w.Team())
		last, sum := make([]int, w.Size()), 0
		note := rpc.HandleInTurn(s, "note", func(_ context.Context, from int, x int) (struct{}, error) {
			if x != last[from]+1 {
				return struct{}{}, fmt.Errorf("%d came behind %d", x, last[from])
			}
			last[from] = x
			sum += x
			return struct{}{}, nil
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		for i := range each {
			for m := range w.Size() {
				if err := note.Send(ctx, m, i+1); err != nil {
					return err
				}
			}
		}
		if err := s.Quiesce(ctx); err != nil {
			return err
		}
		require.Equal(t, w.Size()*each*(each+1)/2, sum)
		return s.Close(ctx)
	})
}

// TestNestedCalls: functions call functions, to any depth, back and forth and to the own rank.
func TestNestedCalls(t *testing.T) {
	pgastest.Each(t, []int{1, 2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		var fib *rpc.Func[int, int]
		fib = rpc.Handle(s, "fib", func(ctx context.Context, _ int, n int) (int, error) {
			if n < 2 {
				return n, nil
			}
			a, err := fib.CallNB(ctx, (w.Rank()+1)%w.Size(), n-1)
			if err != nil {
				return 0, err
			}
			b, err := fib.Call(ctx, (w.Rank()+2)%w.Size(), n-2)
			if err != nil {
				return 0, err
			}
			v, err := a.Wait(ctx)
			return v + b, err
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		v, err := fib.Call(ctx, 0, 10)
		if err != nil {
			return err
		}
		require.Equal(t, 55, v)
		return s.Close(ctx)
	})
}

// TestQuiesceOfChains: messages that send messages are all done when Quiesce returns, however long the chains, also where many functions in turn send to one rank
// that sends back.
func TestQuiesceOfChains(t *testing.T) {
	pgastest.Each(t, []int{1, 2, 4}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const walkers, steps = 50, 40
		s := rpc.New(w.Team())
		came := 0
		var step *rpc.Func[[2]uint64, struct{}]
		step = rpc.HandleInTurn(s, "step", func(ctx context.Context, _ int, a [2]uint64) (struct{}, error) {
			came++
			left, at := a[0], a[1]*6364136223846793005+1442695040888963407
			if left == 0 {
				return struct{}{}, nil
			}
			return struct{}{}, step.Send(ctx, int(at>>33)%w.Size(), [2]uint64{left - 1, at})
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		for i := range walkers {
			if err := step.Send(ctx, i%w.Size(), [2]uint64{steps, uint64(w.Rank()*walkers + i)}); err != nil {
				return err
			}
		}
		if err := s.Quiesce(ctx); err != nil {
			return err
		}
		all := []int{came}
		if err := pgsync.AllReduce(ctx, w.Team(), all, all, pgsync.Sum); err != nil {
			return err
		}
		require.Equal(t, w.Size()*walkers*(steps+1), all[0])
		return s.Close(ctx)
	})
}

// TestLongMessages: payloads of any length come whole, from many goroutines at once, both ways.
func TestLongMessages(t *testing.T) {
	pgastest.EachReal(t, []int{1, 2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		echo := rpc.Handle(s, "echo", func(_ context.Context, _ int, b []byte) ([]byte, error) { return b, nil })
		turns := rpc.HandleInTurn(s, "echo in turn", func(_ context.Context, _ int, b []byte) ([]byte, error) { return b, nil })
		if err := s.Start(ctx); err != nil {
			return err
		}
		var g sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			g.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(w.Rank()), uint64(i)))
				for round := range 12 {
					b := make([]byte, rng.IntN(1<<(4+2*(round%8))))
					for j := range b {
						b[j] = byte(rng.Uint32())
					}
					f := echo
					if round%2 == 1 {
						f = turns
					}
					have, err := f.Call(ctx, rng.IntN(w.Size()), b)
					if err == nil && string(have) != string(b) {
						err = fmt.Errorf("round %d: %d bytes came back as %d others", round, len(b), len(have))
					}
					errs[i] = errors.Join(errs[i], err)
				}
			})
		}
		g.Wait()
		return errors.Join(append(errs, s.Close(ctx))...)
	})
}

// TestFlood: all send to one, which is slow, and to itself, more than rings and queues hold.
func TestFlood(t *testing.T) {
	pgastest.Each(t, []int{2, 4}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const each = 3000
		s := rpc.New(w.Team())
		bytes := 0
		eat := rpc.HandleInTurn(s, "eat", func(_ context.Context, _ int, b []byte) (struct{}, error) {
			bytes += len(b)
			return struct{}{}, nil
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		b := make([]byte, 1000)
		for range each {
			if err := eat.Send(ctx, 0, b); err != nil {
				return err
			}
		}
		if err := s.Flush(ctx, 0); err != nil {
			return err
		}
		if err := s.Quiesce(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			require.Equal(t, w.Size()*each*len(b), bytes)
		}
		return s.Close(ctx)
	})
}

// TestErrorsOfFunctions: what a function returns comes to who has called, and of a message to who flushes, once.
func TestErrorsOfFunctions(t *testing.T) {
	pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		refuse := rpc.Handle(s, "refuse", func(_ context.Context, from int, x int) (int, error) {
			if x < 0 {
				return 0, fmt.Errorf("%d of %d is less than 0", x, from)
			}
			return x, nil
		})
		turn := rpc.HandleInTurn(s, "turn", func(ctx context.Context, from int, x int) (int, error) { return refuse.Call(ctx, from, x) })
		opaque := rpc.Handle(s, "opaque", func(context.Context, int, func()) (int, error) { return 0, nil })
		if err := s.Start(ctx); err != nil {
			return err
		}
		last := w.Size() - 1
		v, err := refuse.Call(ctx, last, 5)
		require.NoError(t, err)
		require.Equal(t, 5, v)
		_, err = refuse.Call(ctx, last, -5)
		require.ErrorIs(t, err, rpc.ErrCalled)
		var told *rpc.Error
		require.ErrorAs(t, err, &told)
		require.Equal(t, rpc.Error{Rank: last, Func: "refuse", Text: fmt.Sprintf("-5 of %d is less than 0", w.Rank())}, *told)
		require.NoError(t, refuse.Send(ctx, last, 1))
		require.NoError(t, refuse.Send(ctx, last, -1))
		require.NoError(t, refuse.Send(ctx, last, 2))
		err = s.Flush(ctx, last)
		require.ErrorIs(t, err, rpc.ErrCalled)
		require.ErrorContains(t, err, "-1 of ")
		require.NoError(t, s.Flush(ctx, last))
		_, err = turn.Call(ctx, last, 1)
		require.ErrorIs(t, err, rpc.ErrCalled)
		require.ErrorContains(t, err, "must not wait")
		_, err = opaque.Call(ctx, last, func() {})
		require.ErrorContains(t, err, "func()")
		require.NotErrorIs(t, err, rpc.ErrCalled)
		for _, target := range []int{-1, w.Size()} {
			_, err = refuse.Call(ctx, target, 1)
			require.ErrorIs(t, err, pgsync.ErrMember)
			require.ErrorIs(t, refuse.Send(ctx, target, 1), pgsync.ErrMember)
			require.ErrorIs(t, s.Flush(ctx, target), pgsync.ErrMember)
		}
		require.NoError(t, refuse.Send(ctx, last, -7))
		err = s.Close(ctx)
		require.ErrorIs(t, err, rpc.ErrCalled)
		_, err = refuse.Call(ctx, last, 1)
		require.ErrorIs(t, err, pgas.ErrClosed)
		require.ErrorIs(t, refuse.Send(ctx, last, 1), pgas.ErrClosed)
		require.ErrorIs(t, s.Flush(ctx, last), pgas.ErrClosed)
		require.ErrorIs(t, s.Close(ctx), pgas.ErrClosed)
		return nil
	})
}

// TestServicesThatDiffer: members whose functions differ are all told, and can make another service.
func TestServicesThatDiffer(t *testing.T) {
	pgastest.Each(t, []int{2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		f := func(context.Context, int, int) (int, error) { return 0, nil }
		s := rpc.New(w.Team())
		g := rpc.Handle(s, "a", f)
		if w.Rank() > 0 {
			rpc.Handle(s, "b", f)
		}
		_, err := g.Call(ctx, 0, 1)
		require.ErrorIs(t, err, pgsync.ErrState)
		require.ErrorIs(t, s.Start(ctx), pgsync.ErrMismatch)
		s = rpc.New(w.Team())
		g = rpc.Handle(s, "a", f)
		if err := s.Start(ctx); err != nil {
			return err
		}
		require.ErrorIs(t, s.Start(ctx), pgsync.ErrState)
		require.Panics(t, func() { rpc.Handle(s, "late", f) })
		_, err = g.Call(ctx, 0, 1)
		require.NoError(t, err)
		return s.Close(ctx)
	})
}

// TestCallWhoseContextEnds: the call returns, the answer that comes later is nobody's, and the next one gets its own.
func TestCallWhoseContextEnds(t *testing.T) {
	pgastest.EachReal(t, []int{2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		hold := make(chan struct{})
		slow := rpc.Handle(s, "slow", func(_ context.Context, _ int, x int) (int, error) {
			<-hold
			return x, nil
		})
		quick := rpc.Handle(s, "quick", func(_ context.Context, _ int, x int) (int, error) { return x, nil })
		if err := s.Start(ctx); err != nil {
			return err
		}
		next := (w.Rank() + 1) % w.Size()
		var begun []*rpc.Pending[int, int]
		for i := range 5 {
			short, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
			_, err := slow.Call(short, next, i)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			p, err := slow.CallNB(ctx, next, 100+i)
			require.NoError(t, err)
			require.False(t, p.Done())
			begun = append(begun, p)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		close(hold)
		for i := range 20 {
			v, err := quick.Call(ctx, next, i)
			require.NoError(t, err)
			require.Equal(t, i, v)
		}
		for i, p := range begun {
			v, err := p.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, 100+i, v)
			require.True(t, p.Done())
		}
		return s.Close(ctx)
	})
}

// TestLoopOverDone: a loop that only asks whether a call has ended ends, in virtual time too.
func TestLoopOverDone(t *testing.T) {
	pgastest.Each(t, []int{1, 2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		triple := rpc.HandleInTurn(s, "triple", func(_ context.Context, _ int, x int) (int, error) { return 3 * x, nil })
		if err := s.Start(ctx); err != nil {
			return err
		}
		for i := range 20 {
			p, err := triple.CallNB(ctx, (w.Rank()+1)%w.Size(), i)
			if err != nil {
				return err
			}
			for !p.Done() {
				require.NoError(t, ctx.Err())
			}
			v, err := p.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, 3*i, v)
		}
		return s.Close(ctx)
	})
}

// TestWorldEndsFirst: a service that is not closed ends with its world.
func TestWorldEndsFirst(t *testing.T) {
	pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		f := rpc.Handle(s, "f", func(ctx context.Context, _ int, x int) (int, error) { return x, nil })
		if err := s.Start(ctx); err != nil {
			return err
		}
		v, err := f.Call(ctx, 0, 3)
		require.NoError(t, err)
		require.Equal(t, 3, v)
		return w.Barrier(ctx)
	})
}

// TestServicesOfTeams: services of different teams, and several of one, go on at once.
func TestServicesOfTeams(t *testing.T) {
	pgastest.Each(t, []int{4, 5}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		half, err := w.Team().Split(ctx, w.Rank()%2, 0)
		if err != nil {
			return err
		}
		var services []*rpc.Service
		var whose []*rpc.Func[int, int]
		for i, team := range []*pgas.Team{w.Team(), half, w.Team()} {
			s := rpc.New(team)
			whose = append(whose, rpc.Handle(s, "whose", func(_ context.Context, from int, _ int) (int, error) {
				return 1000*i + 10*w.Rank() + from, nil
			}))
			if err := s.Start(ctx); err != nil {
				return err
			}
			services = append(services, s)
		}
		for i, s := range services {
			for m := range s.Team().Size() {
				v, err := whose[i].Call(ctx, m, 0)
				require.NoError(t, err)
				require.Equal(t, 1000*i+10*s.Team().WorldRank(m)+s.Team().Rank(), v)
			}
		}
		for _, s := range services {
			err = errors.Join(err, s.Close(ctx))
		}
		return err
	})
}

// TestPutsComeFirst: what a rank has put to a member is there when a function is called that the rank calls afterwards.
func TestPutsComeFirst(t *testing.T) {
	pgastest.Each(t, []int{2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const n = 5000
		win, err := window.Allocate[int32](ctx, w.Team(), n*w.Size())
		if err != nil {
			return err
		}
		s := rpc.New(w.Team())
		look := rpc.HandleInTurn(s, "look", func(_ context.Context, from int, want int32) (struct{}, error) {
			for i, v := range win.Local()[from*n : (from+1)*n] {
				if v != want {
					return struct{}{}, fmt.Errorf("element %d of rank %d is %d, and should be %d", i, from, v, want)
				}
			}
			return struct{}{}, nil
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		src := make([]int32, n)
		for round := range int32(20) {
			for i := range src {
				src[i] = round
			}
			for m := range w.Size() {
				if err := win.Put(m, w.Rank()*n, src); err != nil {
					return err
				}
				if err := look.Send(ctx, m, round); err != nil {
					return err
				}
			}
			for m := range w.Size() {
				if err := s.Flush(ctx, m); err != nil {
					return err
				}
			}
		}
		return errors.Join(s.Close(ctx), win.Free(ctx))
	})
}
