package pgsync_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/pgas"
	pgsync "gopgas/sync"
)

// lengths are odd, empty, as large as an outbox, and larger.
const outbox = 16<<10 - 64

func broadcasts[T any](ctx context.Context, t *testing.T, w *pgas.World, n, root int) error {
	buf := make([]T, n)
	b := mem.Of(buf).Data()
	rng := rand.New(rand.NewPCG(uint64(n), uint64(root)))
	want := make([]byte, len(b))
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	if w.Rank() == root {
		copy(b, want)
	}
	if err := pgsync.Broadcast(ctx, w.Team(), buf, root); err != nil {
		return err
	}
	if !bytes.Equal(want, b) {
		t.Errorf("rank %d: broadcast of %d from %d", w.Rank(), n, root)
	}
	return nil
}

func TestBroadcast(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, root := range []int{0, w.Size() / 2, w.Size() - 1} {
			for _, n := range []int{0, 1, 3, 100} {
				if err := errors.Join(broadcasts[byte](ctx, t, w, n, root), broadcasts[[3]uint16](ctx, t, w, n, root)); err != nil {
					return err
				}
			}
		}
		for _, n := range []int{outbox - 1, outbox, outbox + 1, 3*outbox + 7} {
			if err := broadcasts[byte](ctx, t, w, n, w.Size()-1); err != nil {
				return err
			}
		}
		return broadcasts[[3]uint16](ctx, t, w, outbox/5, 0)
	}, upTo17()...)
}

func TestAllGather(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, n := range []int{0, 1, 5, outbox/4 + 3} {
			src, dst := make([]int32, n), make([]int32, n*w.Size())
			for i := range src {
				src[i] = int32(w.Rank()*1000 + i)
			}
			if err := pgsync.AllGather(ctx, w.Team(), dst, src); err != nil {
				return err
			}
			for i, v := range dst {
				if v != int32(i/n*1000+i%n) {
					t.Fatalf("element %d is %d", i, v)
				}
			}
		}
		return nil
	}, upTo17()...)
}

// inputs are one member's numbers, the same whoever computes them.
func inputs[T pgsync.Number](rank, n int) []T {
	rng := rand.New(rand.NewPCG(uint64(rank), uint64(n)))
	out := make([]T, n)
	for i := range out {
		switch any(out[i]).(type) {
		case float32, float64:
			out[i] = T(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(7)-3)))
		default:
			out[i] = T(rng.IntN(128))
		}
	}
	return out
}

func fold[T pgsync.Number](op pgsync.Op, kind atom.Elem, a, b T) T {
	x, y := []T{a}, []T{b}
	mem.Of(x).SetBits(atom.Combine(op, kind.Kind, mem.Of(x).Bits(), mem.Of(y).Bits(), 0))
	return x[0]
}

func reduces[T pgsync.Number](ctx context.Context, t *testing.T, w *pgas.World, n int) error {
	e := atom.ElemOf[T]()
	for op := range atom.Load + 2 {
		if e.Check(op) != nil || op >= pgsync.Replace {
			require.ErrorIs(t, pgsync.AllReduce(ctx, w.Team(), make([]T, 1), make([]T, 1), op), atom.ErrUndefined, "%s op %d", e.Kind, uint8(op))
			continue
		}
		want := inputs[T](0, n)
		for m := 1; m < w.Size(); m++ {
			for i, v := range inputs[T](m, n) {
				want[i] = fold(op, e, want[i], v)
			}
		}
		src, dst := inputs[T](w.Rank(), n), make([]T, n)
		if err := pgsync.AllReduce(ctx, w.Team(), dst, src, op); err != nil {
			return err
		}
		if !bytes.Equal(mem.Of(want).Data(), mem.Of(dst).Data()) { // in the order of ranks, bit by bit
			t.Errorf("rank %d: allreduce %s of %d %s", w.Rank(), op, n, e.Kind)
		}
		root := int(op) % w.Size()
		if w.Rank() != root {
			dst = nil
		} else {
			dst = src // may be the same slice
		}
		if err := pgsync.Reduce(ctx, w.Team(), dst, src, op, root); err != nil {
			return err
		}
		if w.Rank() == root && !bytes.Equal(mem.Of(want).Data(), mem.Of(dst).Data()) {
			t.Errorf("rank %d: reduce %s of %d %s", w.Rank(), op, n, e.Kind)
		}
	}
	return nil
}

func TestReduceEveryTypeAndOperation(t *testing.T) {
	sizes := []int{1, 2, 3, 5}
	if raceEnabled || testing.Short() {
		sizes = []int{2, 3}
	}
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, f := range []func(context.Context, *testing.T, *pgas.World, int) error{
			reduces[int8], reduces[uint8], reduces[int16], reduces[uint16], reduces[int32], reduces[uint32], reduces[int64],
			reduces[uint64], reduces[int], reduces[uint], reduces[uintptr], reduces[float32], reduces[float64],
		} {
			if err := f(ctx, t, w, 7); err != nil {
				return err
			}
		}
		return errors.Join(reduces[float64](ctx, t, w, 0), reduces[float64](ctx, t, w, outbox/8+5))
	}, sizes...)
}

func TestReduceInManySizes(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		return errors.Join(reduces[float32](ctx, t, w, 3), reduces[uint16](ctx, t, w, 1))
	}, upTo17()...)
}

func TestReduceNaN(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		src := []float64{1, float64(w.Rank()), math.Copysign(0, -1)}
		if w.Rank() == 1 {
			src[0] = math.NaN()
		}
		for _, op := range []pgsync.Op{pgsync.Min, pgsync.Max, pgsync.Sum} {
			dst := make([]float64, 3)
			if err := pgsync.AllReduce(ctx, w.Team(), dst, src, op); err != nil {
				return err
			}
			require.True(t, math.IsNaN(dst[0]), "%s", op)
			require.False(t, math.IsNaN(dst[1]))
			require.True(t, math.Signbit(dst[2]))
		}
		return nil
	}, 3)
}

// TestGoroutinesOfARankTakeTurns: goroutines may call collectives of one team, one after the other.
func TestGoroutinesOfARankTakeTurns(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		var mu sync.Mutex
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for g := range errs {
			wg.Go(func() {
				for range 10 {
					mu.Lock()
					v := []int{1}
					errs[g] = errors.Join(errs[g], pgsync.AllReduce(ctx, w.Team(), v, v, pgsync.Sum))
					mu.Unlock()
					if v[0] != w.Size() {
						errs[g] = errors.New("wrong sum")
					}
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	}, 2, 3)
}

func TestExchangeOfAnyLengths(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for round, unit := range []int{0, 1, 1000, outbox} {
			lengthOf := func(m int) int { return unit * ((m + round) % 3) }
			cards, err := w.Team().Exchange(ctx, bytes.Repeat([]byte{byte(w.Rank() + 1)}, lengthOf(w.Rank())))
			if err != nil {
				return err
			}
			require.Len(t, cards, w.Size())
			for m, c := range cards {
				if !bytes.Equal(bytes.Repeat([]byte{byte(m + 1)}, lengthOf(m)), c) {
					t.Errorf("card of %d", m)
				}
			}
		}
		return nil
	}, 1, 2, 3, 6)
}
