package hashmap_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/hashmap"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

// input is what a rank adds: to some keys that others add to as well, and among them those at either end.
func input(rank int) (keys []uint64, vs []int64) {
	rng := rand.New(rand.NewPCG(7, uint64(rank)))
	for range 60 {
		keys, vs = append(keys, rng.Uint64N(40)), append(vs, int64(rng.IntN(100)))
	}
	for _, end := range []uint64{0, 1<<64 - 1, 1<<64 - 2, 1 << 63} {
		keys, vs = append(keys, end), append(vs, int64(1+rank))
	}
	return keys, vs
}

// sums is an ordinary map with what all ranks add.
func sums(ranks int) map[uint64]int64 {
	all := map[uint64]int64{}
	for r := range ranks {
		keys, vs := input(r)
		for i, k := range keys {
			all[k] += vs[i]
		}
	}
	return all
}

// holds compares a map with an ordinary one, key by key and part by part.
func holds(ctx context.Context, m *hashmap.Map[int64], want map[uint64]int64) error {
	n, err := m.Len(ctx)
	if err != nil {
		return err
	}
	if n != len(want) {
		return fmt.Errorf("there are %d keys, and should be %d", n, len(want))
	}
	for k, v := range want {
		if have, ok, err := m.Load(k); err != nil || !ok || have != v {
			return fmt.Errorf("key %d has %d (%v), and should have %d: %w", k, have, ok, v, err)
		}
	}
	if _, ok, err := m.Load(12345); err != nil || ok {
		return fmt.Errorf("key 12345 is there: %v, %w", ok, err)
	}
	if err := m.Fence(ctx); err != nil { // the others' loads are over
		return err
	}
	mine := []int{0}
	for k, v := range m.Mine() {
		if have, ok := want[k]; !ok || have != v {
			return fmt.Errorf("this rank has %d for key %d, and should have %d", v, k, have)
		}
		mine[0]++
	}
	if err := pgsync.AllReduce(ctx, m.Team(), mine, mine, pgsync.Sum); err != nil {
		return err
	}
	if mine[0] != n {
		return fmt.Errorf("the parts have %d keys of %d", mine[0], n)
	}
	return nil
}

// TestSums: all ranks add to the same keys at the same time, one by one or many at once, and nothing is lost.
func TestSums(t *testing.T) {
	pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		keys, vs := input(w.Rank())
		want := sums(w.Size())
		for i, capacity := range []int{500, len(want)} {
			m, err := hashmap.New[int64](ctx, w.Team(), capacity)
			if err != nil {
				return err
			}
			if i > 0 {
				err = m.AddAll(ctx, keys, vs)
			}
			for k := 0; i == 0 && k < len(keys) && err == nil; k++ {
				_, err = m.Add(keys[k], vs[k])
			}
			if err != nil {
				return err
			}
			if err := holds(ctx, m, want); err != nil {
				return fmt.Errorf("room for %d, many at once %v: %w", capacity, i > 0, err)
			}
			if err := m.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestSwapAndAddTellWhatWas: old values of new keys are 0, and others what they were; floats are values as well.
func TestSwapAndAddTellWhatWas(t *testing.T) {
	pgastest.Each(t, []int{2}, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		m, err := hashmap.New[float32](ctx, w.Team(), 10)
		if err != nil {
			return err
		}
		key := uint64(w.Rank())
		for i, call := range []func() (float32, error){
			func() (float32, error) { return m.Swap(key, 2) },
			func() (float32, error) { return m.Add(key, 0.5) },
			func() (float32, error) { return m.Swap(key, -1) },
			func() (float32, error) { v, _, err := m.Load(key); return v, err },
		} {
			if old, err := call(); err != nil || old != []float32{0, 2, 2.5, -1}[i] {
				return fmt.Errorf("call %d: %v was there: %w", i, old, err)
			}
		}
		return m.Free(ctx)
	})
}

// TestFull: there is room for all keys of the capacity, and when all places are taken the error says so; what is there can be added to.
func TestFull(t *testing.T) {
	pgastest.Run(t, 2, func(ctx context.Context, w *pgas.World) error {
		const capacity = 5
		m, err := hashmap.New[int64](ctx, w.Team(), capacity)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			want := map[uint64]int64{}
			for k := range uint64(100) {
				_, err := m.Add(k, 1)
				if err != nil {
					require.ErrorIs(t, err, hashmap.ErrFull)
					require.ErrorIs(t, m.AddAll(ctx, []uint64{k}, []int64{1}), hashmap.ErrFull)
					break
				}
				want[k] = 1
			}
			require.GreaterOrEqual(t, len(want), capacity)
			require.Less(t, len(want), 100)
			for k := range maps.Keys(want) {
				old, err := m.Add(k, 1)
				require.NoError(t, err)
				require.EqualValues(t, 1, old)
			}
			_, ok, err := m.Load(99)
			require.NoError(t, err)
			require.False(t, ok)
		}
		return m.Free(ctx)
	})
}

// TestRefused: capacities that cannot be, or differ, and lists that do not fit together.
func TestRefused(t *testing.T) {
	pgastest.Run(t, 2, func(ctx context.Context, w *pgas.World) error {
		_, err := hashmap.New[int32](ctx, w.Team(), -1)
		require.ErrorIs(t, err, window.ErrRange)
		_, err = hashmap.New[int32](ctx, w.Team(), 10+w.Rank())
		require.ErrorIs(t, err, pgsync.ErrMismatch)
		m, err := hashmap.New[int32](ctx, w.Team(), 0)
		if err != nil {
			return err
		}
		require.ErrorIs(t, m.AddAll(ctx, []uint64{1}, nil), pgas.ErrRange)
		require.NoError(t, m.AddAll(ctx, nil, nil))
		return m.Free(ctx)
	})
}

// TestLoadChangesNothing: not a bit of a value, such as the sign of a zero.
func TestLoadChangesNothing(t *testing.T) {
	pgastest.Each(t, []int{2}, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		m, err := hashmap.New[float64](ctx, w.Team(), 8)
		if err != nil {
			return err
		}
		for k, bits := range map[uint64]uint64{1: 1 << 63, 2: 0x7ff4000000000123, 3: 5, math.MaxUint64: 1 << 63} { // -0, a NaN that signals, the smallest ones
			k = k - uint64(w.Rank())*10 // each rank its own
			if _, err := m.Swap(k, math.Float64frombits(bits)); err != nil {
				return err
			}
			for range 3 {
				v, ok, err := m.Load(k)
				if err != nil || !ok || math.Float64bits(v) != bits {
					return fmt.Errorf("key %d: the bits %x (%v), and should be %x: %w", k, math.Float64bits(v), ok, bits, err)
				}
			}
		}
		if err := m.Fence(ctx); err != nil {
			return err
		}
		return m.Free(ctx)
	})
}
