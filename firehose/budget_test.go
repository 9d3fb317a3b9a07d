package firehose

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	for _, c := range []struct {
		name        string
		l           Limits
		unit        int64
		peers, own  int64
		share, vict int64
	}{
		{"three quarters", Limits{Ranks: 5, Pinnable: 8 * mib}, 32 * kib, 6 * mib, 2 * mib, 48, 64},
		{"peers given", Limits{Ranks: 2, Pinnable: 8 * mib, Peers: 2 * mib}, 32 * kib, 2 * mib, 6 * mib, 64, 192},
		{"own given", Limits{Ranks: 2, Pinnable: 8 * mib, Own: mib}, 32 * kib, 7 * mib, mib, 224, 32},
		{"one rank has all", Limits{Ranks: 1, Pinnable: 4 * mib}, 32 * kib, 3 * mib, mib, 96, 32},
		{"the unit shrinks", Limits{Ranks: 65, Pinnable: 1 * mib}, 8 * kib, 768 * kib, 256 * kib, 1, 32},
		{"down to a page", Limits{Ranks: 100, Pinnable: 66 * 8 * kib}, 4 * kib, 396 * kib, 132 * kib, 1, 33},
		{"and then there is none", Limits{Ranks: 101, Pinnable: 66 * 8 * kib}, 4 * kib, 396 * kib, 132 * kib, 0, 33},
		{"nothing may be registered", Limits{Ranks: 4}, 4 * kib, 0, 0, 0, 0},
		{"large pages", Limits{Ranks: 2, Pinnable: 64 * mib, Page: 64 * kib}, 64 * kib, 48 * mib, 16 * mib, 768, 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.l.Page == 0 {
				c.l.Page = 4096
			}
			b, err := Split(c.l)
			require.NoError(t, err)
			require.Equal(t, [5]int64{c.unit, c.peers, c.own, c.share, c.vict}, [5]int64{b.Unit(), b.Peers, b.Own, b.Share, b.Victims})
			require.LessOrEqual(t, b.Share*b.Unit()*int64(b.Ranks-1), b.Peers)
			if b.Share > 0 {
				require.LessOrEqual(t, int64(1)<<b.MaxOrder(), b.Share)
			}
		})
	}
}

func TestSplitRefuses(t *testing.T) {
	good := Limits{Ranks: 2, Pinnable: 1 << 20, Page: 4096}
	_, err := Split(good)
	require.NoError(t, err)
	for name, change := range map[string]func(l *Limits){
		"no ranks":           func(l *Limits) { l.Ranks = 0 },
		"no page":            func(l *Limits) { l.Page = 0 },
		"odd unit":           func(l *Limits) { l.Unit = 5000 },
		"unit below a page":  func(l *Limits) { l.Unit = 2048 },
		"negative":           func(l *Limits) { l.Own = -1 },
		"more than there is": func(l *Limits) { l.Peers, l.Own = 1<<20, 1 },
		"a sum that wraps":   func(l *Limits) { l.Peers, l.Own = math.MaxInt64, math.MaxInt64 },
	} {
		l := good
		change(&l)
		_, err := Split(l)
		require.ErrorIs(t, err, ErrLimits, name)
	}
}

func TestAgree(t *testing.T) {
	l := Limits{Ranks: 3, Pinnable: 1 << 20, Page: 4096}
	b, err := Split(l)
	require.NoError(t, err)
	seen := map[uint64]string{b.Hash(): "itself"}
	for name, change := range map[string]func(b *Budget){
		"ranks": func(b *Budget) { b.Ranks++ }, "unit": func(b *Budget) { b.Shift++ }, "M": func(b *Budget) { b.Peers++ },
		"V": func(b *Budget) { b.Own++ }, "F": func(b *Budget) { b.Share++ },
		"V in units": func(b *Budget) { b.Victims++ }, "pages": func(b *Budget) { b.Page *= 2 },
	} {
		o := b
		change(&o)
		require.NotContains(t, seen, o.Hash(), name)
		seen[o.Hash()] = name
	}
	require.NoError(t, b.Agree([]uint64{b.Hash(), b.Hash(), b.Hash()}))
	err = b.Agree([]uint64{b.Hash(), b.Hash() + 1, 7})
	require.ErrorIs(t, err, ErrDisagree)
	require.ErrorContains(t, err, "rank 1, 2 ")
}

func TestRuns(t *testing.T) {
	r := Range{ID: 7, Start: 0x1000_0800, Bytes: 5 * unit} // begins in the middle of a page
	for _, c := range []struct {
		order        uint8
		off, n       uint64
		first, count uint64
	}{
		{0, 0, 1, 0, 1},
		{0, 2047, 1, 0, 1},
		{0, 2047, 2, 0, 2},
		{0, 2048, 4096, 1, 1},
		{0, 2048, 4097, 1, 2},
		{0, 0, 5 * unit, 0, 6},
		{1, 0, 5 * unit, 0, 3},
		{3, 0, 5 * unit, 0, 1},
		{0, 5 * unit, 0, 0, 0},
	} {
		run := r.Run(12, c.order, c.off, c.n)
		require.Equal(t, Run{MakeBucket(7, c.order, c.first), uint32(c.count)}, run, "%+v", c)
		require.True(t, c.n == 0 || r.has(12, run))
	}
	// The buckets of every order cover the range without gaps or overlap.
	for order := range uint8(4) {
		at, all := uint64(0), r.Run(12, order, 0, r.Bytes)
		for i := range all.Count {
			off, n := r.Extent(12, all.At(i))
			require.Equal(t, at, off)
			require.Positive(t, n)
			at += n
			require.Equal(t, Run{all.At(i), 1}, r.Run(12, order, off, n))
		}
		require.Equal(t, r.Bytes, at)
		require.False(t, r.has(12, Run{all.First, all.Count + 1}))
		require.False(t, r.has(12, Run{all.At(all.Count), 1}))
	}
	// A range that ends with the address space.
	top := Range{ID: 1, Start: 0xffff_ffff_ffff_0000, Bytes: 0x1_0000}
	require.NoError(t, top.check(12))
	require.Equal(t, Run{MakeBucket(1, 0, 15), 1}, top.Run(12, 0, 0xf000, 0x1000))
	off, n := top.Extent(12, MakeBucket(1, 0, 15))
	require.Equal(t, [2]uint64{0xf000, 0x1000}, [2]uint64{off, n})
	for _, bad := range []Range{
		{ID: 1, Start: 0xffff_ffff_ffff_0000, Bytes: 0x1_0001},
		{ID: 1, Start: 1},
		{ID: maxRange + 1, Start: 1, Bytes: 1},
		{ID: 1, Bytes: 1 << 62},
		{ID: 1, Bytes: 1 << 52},
	} {
		require.ErrorIs(t, bad.check(12), ErrRange, "%+v", bad)
	}
	b := MakeBucket(maxRange, mostOrder, indexMask)
	require.Equal(t, [3]uint64{maxRange, mostOrder, indexMask}, [3]uint64{uint64(b.Range()), uint64(b.Order()), b.Index()})
}

func TestTable(t *testing.T) {
	var x index
	want := map[Bucket]int32{}
	rng := newRand(1)
	for step := range 20_000 {
		b := MakeBucket(uint32(rng.IntN(3)), uint8(rng.IntN(2)), uint64(rng.IntN(200)))
		grow := step%4000 < 2500
		if _, ok := want[b]; !ok && grow {
			want[b] = int32(step)
			x.insert(b, int32(step))
		} else if ok && !grow {
			delete(want, b)
			x.remove(b)
		}
		require.Equal(t, len(want), x.n)
		require.LessOrEqual(t, len(x.cells), max(leastCells, 8*x.n+leastCells))
		if step%50 == 0 {
			for id := range uint32(3) {
				for i := range uint64(200) {
					b := MakeBucket(id, 0, i)
					at, ok := want[b]
					if !ok {
						at = -1
					}
					require.Equal(t, at, x.find(b))
				}
			}
		}
	}
	for b := range want {
		x.remove(b)
	}
	require.Nil(t, x.cells, "an empty table takes no memory")
}
