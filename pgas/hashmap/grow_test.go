package hashmap_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/hashmap"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// TestModel: each rank does to keys of its own what it does to an ordinary map, and each call says the same of both, while the others' keys fill the places between.
// Between phases the map grows, shrinks or stays.
func TestModel(t *testing.T) {
	pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		m, err := hashmap.New[int64](ctx, w.Team(), 150)
		if err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(3, uint64(w.Rank())))
		want := map[uint64]int64{}
		key := func() uint64 { // of few, so that most are there; two ranks have the ends
			if k := rng.Uint64N(12); k > 0 || w.Rank() > 1 {
				return uint64(w.Size())*k + uint64(w.Rank())
			}
			return math.MaxUint64 - uint64(w.Rank())
		}
		for phase := range 4 {
			for range 40 {
				k, v := key(), int64(rng.IntN(100))
				was, there := want[k]
				var have int64
				ok := there
				switch rng.IntN(5) {
				case 0, 1:
					have, err = m.Add(k, v)
					want[k] += v
				case 2:
					have, err = m.Swap(k, v)
					want[k] = v
				case 3:
					have, ok, err = m.Load(k)
				default:
					ok, err = m.Delete(k)
					have, was = 0, 0
					delete(want, k)
				}
				if err != nil || have != was || ok != there {
					return fmt.Errorf("phase %d, key %d: %d, %v; should be %d, %v: %w", phase, k, have, ok, was, there, err)
				}
			}
			if err := m.Fence(ctx); err != nil {
				return err
			}
			if phase > 0 { // as small as can be, then larger
				if err := m.Grow(ctx, []int{0, 0, 200, 500}[phase]); err != nil {
					return err
				}
			}
			sum := []int{len(want)}
			if err := pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum); err != nil {
				return err
			}
			if n, err := m.Len(ctx); err != nil || n != sum[0] {
				return fmt.Errorf("phase %d: there are %d keys, and should be %d: %w", phase, n, sum[0], err)
			}
			for k, v := range want {
				if have, ok, err := m.Load(k); err != nil || !ok || have != v {
					return fmt.Errorf("phase %d: key %d has %d (%v), and should have %d: %w", phase, k, have, ok, v, err)
				}
			}
			if phase == 1 { // there were few places; now there is room again
				if err := m.Grow(ctx, 150); err != nil {
					return err
				}
			}
			if err := m.Fence(ctx); err != nil {
				return err
			}
		}
		return m.Free(ctx)
	})
}

// TestAddAndDeleteAtOnce is a litmus: all ranks bring the same few keys and delete them. A place begins its life with one addition that finds 0, and ends it with one
// deletion that says so, or lives; no addition to it is lost, so each finds what those before have left.
func TestAddAndDeleteAtOnce(t *testing.T) {
	pgastest.Each(t, []int{2, 4}, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		const keys, rounds = 3, 40
		m, err := hashmap.New[int64](ctx, w.Team(), keys*rounds*w.Size())
		if err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(5, uint64(w.Rank())))
		tally := make([]int64, keys*(rounds*w.Size()+1)) // of each key: how many additions found that number, and before them all: deletions
		at := func(k uint64, n int64) *int64 { return &tally[int(k)*(rounds*w.Size()+1)+int(n)] }
		for range rounds {
			k := rng.Uint64N(keys)
			old, err := m.Add(k, 1)
			if err != nil {
				return err
			}
			*at(k, 1+old)++
			if rng.IntN(3) > 0 {
				continue
			}
			k = rng.Uint64N(keys)
			ok, err := m.Delete(k)
			if err != nil {
				return err
			}
			if ok {
				*at(k, 0)++
			}
		}
		if err := pgsync.AllReduce(ctx, w.Team(), tally, tally, pgsync.Sum); err != nil {
			return err
		}
		for k := range uint64(keys) {
			v, ok, err := m.Load(k)
			if err != nil {
				return err
			}
			lives := int64(0)
			if ok {
				lives = 1
			}
			if *at(k, 1) != *at(k, 0)+lives {
				return fmt.Errorf("key %d was new %d times and deleted %d times, and is there: %v", k, *at(k, 1), *at(k, 0), ok)
			}
			for n := int64(1); n < int64(rounds*w.Size()); n++ {
				if *at(k, n) < *at(k, n+1) {
					return fmt.Errorf("key %d: %d additions found %d, and %d found one less", k, *at(k, n+1), n, *at(k, n))
				}
			}
			if ok && *at(k, v) == 0 {
				return fmt.Errorf("key %d has %d, and no addition made it that", k, v)
			}
		}
		if err := m.Fence(ctx); err != nil { // the others' loads are over
			return err
		}
		return m.Free(ctx)
	})
}

// TestMerge: a map without room takes all that the members bring, some of which bring much and some nothing, with what it had and without what was deleted.
func TestMerge(t *testing.T) {
	pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		m, err := hashmap.New[int64](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		want := sums(w.Size())
		keys, vs := input(w.Rank())
		if err := m.Merge(ctx, keys, vs); err != nil {
			return err
		}
		if err := holds(ctx, m, want); err != nil {
			return fmt.Errorf("once: %w", err)
		}
		if err := m.Fence(ctx); err != nil {
			return err
		}
		gone := 0
		for k := range want {
			if k%2 == 0 {
				if int(k/2)%w.Size() == w.Rank() {
					if ok, err := m.Delete(k); err != nil || !ok {
						return fmt.Errorf("delete key %d: %v, %w", k, ok, err)
					}
				}
				delete(want, k)
				gone++
			}
		}
		if gone == 0 {
			return fmt.Errorf("nothing was deleted")
		}
		many := make([]uint64, 0, 3000) // more than go in a round, from the last rank alone
		for k := range uint64(cap(many)) {
			k = 1000 + k/2
			if want[k]++; w.Rank() == w.Size()-1 {
				many = append(many, k)
			}
		}
		ones := make([]int64, len(many))
		for i := range ones {
			ones[i] = 1
		}
		if err := m.Merge(ctx, many, ones); err != nil {
			return err
		}
		delete(want, 12345) // holds asks for one that is not there
		if err := holds(ctx, m, want); err != nil {
			return fmt.Errorf("again: %w", err)
		}
		return m.Free(ctx)
	})
}

// TestGrowKeepsBits: values come through as they are.
func TestGrowKeepsBits(t *testing.T) {
	pgastest.Each(t, []int{2}, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		m, err := hashmap.New[float64](ctx, w.Team(), 8)
		if err != nil {
			return err
		}
		want := map[uint64]uint64{1: math.Float64bits(math.Copysign(0, -1)), 2: 0x7ff8000000000123, math.MaxUint64: 1, math.MaxUint64 - 1: math.Float64bits(math.Inf(-1))}
		for k, v := range want {
			if w.Rank() == 0 {
				if _, err := m.Swap(k, math.Float64frombits(v)); err != nil {
					return err
				}
			}
		}
		if err := m.Grow(ctx, 100); err != nil {
			return err
		}
		have := map[uint64]uint64{}
		for k, v := range m.Mine() {
			have[k] = math.Float64bits(v)
		}
		for k, v := range have {
			if want[k] != v {
				return fmt.Errorf("key %d has the bits %x, and should have %x", k, v, want[k])
			}
		}
		n := []int{len(have)}
		if err := pgsync.AllReduce(ctx, w.Team(), n, n, pgsync.Sum); err != nil {
			return err
		}
		if n[0] != len(want) {
			return fmt.Errorf("%d keys came through of %d", n[0], len(want))
		}
		return m.Free(ctx)
	})
}

// TestPlacesOfDeletedKeys: they are taken until the map grows, the two largest keys' too.
func TestPlacesOfDeletedKeys(t *testing.T) {
	pgastest.Run(t, 2, func(ctx context.Context, w *pgas.World) error {
		m, err := hashmap.New[int32](ctx, w.Team(), 4)
		if err != nil {
			return err
		}
		for _, key := range []uint64{7, math.MaxUint64, math.MaxUint64 - 1} {
			if w.Rank() == 1 {
				times := 0
				for ; times < 1000; times++ {
					old, err := m.Add(key, 5)
					if err != nil {
						require.ErrorIs(t, err, hashmap.ErrFull)
						break
					}
					require.Zero(t, old, "it was deleted")
					ok, err := m.Delete(key)
					require.NoError(t, err)
					require.True(t, ok)
					ok, err = m.Delete(key)
					require.NoError(t, err)
					require.False(t, ok)
				}
				require.GreaterOrEqual(t, times, 4)
				require.Less(t, times, 1000)
			}
			if err := m.Grow(ctx, 4); err != nil {
				return err
			}
		}
		if n, err := m.Len(ctx); err != nil || n != 0 {
			return fmt.Errorf("%d keys: %w", n, err)
		}
		all := map[uint64]int32{7: 1, math.MaxUint64: 2, math.MaxUint64 - 1: 3}
		for range 20 { // of which the spare places have room for few
			for k := range all {
				if w.Rank() == 0 {
					_, err := m.Delete(k)
					require.NoError(t, err)
				}
			}
			keys, vs := []uint64{}, []int32{}
			if w.Rank() == 1 {
				for _, k := range []uint64{7, math.MaxUint64, math.MaxUint64 - 1} {
					keys, vs = append(keys, k), append(vs, all[k])
				}
			}
			require.NoError(t, m.Merge(ctx, keys, vs))
			for k, v := range all {
				have, ok, err := m.Load(k)
				require.NoError(t, err)
				require.True(t, ok)
				require.Equal(t, v, have)
			}
			if err := m.Fence(ctx); err != nil {
				return err
			}
		}
		require.ErrorIs(t, m.Grow(ctx, w.Rank()), pgsync.ErrMismatch)
		require.ErrorIs(t, m.Grow(ctx, -1), pgas.ErrRange)
		require.ErrorIs(t, m.Merge(ctx, []uint64{1}, make([]int32, w.Rank())), pgas.ErrRange, "one member's lists do not fit together: all are told")
		mine := maps.Collect(m.Mine())
		for k, v := range mine {
			require.Equal(t, all[k], v)
		}
		return m.Free(ctx)
	})
}

// asking is a context that counts how often it is asked whether it has ended, and ends at the last time.
type asking struct {
	context.Context
	times, last *int
}

func (a asking) Err() error {
	if *a.times++; *a.times < *a.last {
		return nil
	}
	return context.Canceled
}

// TestGrowEnds: Grow asks its context at times while it moves keys, on a rank alone too, and leaves the map as it was.
func TestGrowEnds(t *testing.T) {
	pgastest.Run(t, 1, func(ctx context.Context, w *pgas.World) error {
		const n = 5000
		keys, ones := make([]uint64, n), make([]int64, n)
		for i := range keys {
			keys[i], ones[i] = uint64(i), int64(i)
		}
		m, err := hashmap.New[int64](ctx, w.Team(), n)
		require.NoError(t, err)
		looks := func() int {
			times, last := 0, math.MaxInt
			require.NoError(t, m.Grow(asking{ctx, &times, &last}, n))
			return times
		}
		few := looks()
		require.NoError(t, m.AddAll(ctx, keys, ones))
		many := looks()
		require.GreaterOrEqual(t, many, few+n/1024, "once in 1024 keys")
		for last, err := 1, context.Canceled; err != nil; last++ {
			times, sum := 0, int64(0)
			if err = m.Grow(asking{ctx, &times, &last}, n); err != nil {
				require.ErrorIs(t, err, context.Canceled, "at look %d of %d", last, many)
			} else {
				require.Greater(t, last, many-few, "only the old memory is given back after the context's end")
			}
			for _, v := range m.Mine() {
				sum += v
			}
			require.EqualValues(t, n*(n-1)/2, sum)
		}
		return m.Free(ctx)
	})
}
