package regmgr

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

func fakeRegion(lo, n uint64, a transport.Access) *Region {
	r := &Region{lo: lo, hi: lo + n, access: a, place: -1}
	r.word.Store(word(ready, 0, 0))
	return r
}

// TestIndexAgainstList compares the tree with a list that is searched whole.
func TestIndexAgainstList(t *testing.T) {
	const base = 0x7f12_3456_0000
	rng := rand.New(rand.NewPCG(1, 2))
	x := new(index)
	var all []*Region
	pick := func() (lo, n uint64) {
		// Pages, slots of all three levels, and ranges across their borders.
		size := uint64(1) << rng.IntN(38)
		return base + rng.Uint64N(4)<<(pageBits+levelBits*rng.IntN(4)) + rng.Uint64N(1<<15), 1 + rng.Uint64N(size)
	}
	for step := range 500 {
		switch {
		case len(all) < 60 || rng.IntN(3) > 0 && len(all) < 200:
			lo, n := pick()
			if len(all) > 0 && rng.IntN(2) == 0 { // inside of, or at the edge of, one that there is
				o := all[rng.IntN(len(all))]
				lo = o.lo + rng.Uint64N(o.hi-o.lo)
				n = 1 + rng.Uint64N(o.hi-o.lo)
			}
			r := fakeRegion(lo, n, transport.Access(rng.IntN(2)))
			require.True(t, x.insert(r))
			all = append(all, r)
		default:
			i := rng.IntN(len(all))
			x.remove(all[i])
			all = slices.Delete(all, i, i+1)
		}
		lo, n := pick()
		if o := all[rng.IntN(len(all))]; rng.IntN(3) > 0 {
			lo = o.lo + rng.Uint64N(o.hi-o.lo)
			n = min(n, o.hi-lo+rng.Uint64N(2))
		}
		a := transport.Access(rng.IntN(2))
		want := slices.ContainsFunc(all, func(r *Region) bool { return r.serves(lo, lo+n, a) })
		got := x.find(lo, lo+n, a)
		require.Equal(t, want, got != nil, "step %d: [%#x, +%#x)", step, lo, n)
		if got != nil {
			require.True(t, got.serves(lo, lo+n, a))
			require.Contains(t, all, got)
		}
		found := map[*Region]bool{}
		x.each(lo, lo+n, func(r *Region) bool { found[r] = true; return true })
		for _, r := range all {
			if r.lo < lo+n && lo < r.hi {
				require.True(t, found[r], "step %d: each left out [%#x, %#x) of [%#x, +%#x)", step, r.lo, r.hi, lo, n)
			}
		}
	}
	for _, r := range all {
		x.remove(r)
	}
	x.each(0, 1<<addrBits, func(r *Region) bool { require.Fail(t, "left", "%#x", r.lo); return true })
}

func TestIndexPrefersReady(t *testing.T) {
	x := new(index)
	going, there := fakeRegion(0x10000, 0x2000, 0), fakeRegion(0x10000, 0x2000, 0)
	going.word.Store(word(leaving, 0, 0))
	for _, order := range [][]*Region{{going, there}, {there, going}} {
		for _, r := range order {
			require.True(t, x.insert(r))
		}
		require.Same(t, there, x.find(0x10000, 0x10001, 0))
		x.remove(there)
		require.Same(t, going, x.find(0x10000, 0x10001, 0))
		x.remove(going)
		require.Nil(t, x.find(0x10000, 0x10001, 0))
	}
	going.word.Store(word(dead, 0, 0))
	require.True(t, x.insert(going))
	require.Nil(t, x.find(0x10000, 0x10001, 0), "what is dead serves nobody")
}

func TestIndexRefusesStrangeAddresses(t *testing.T) {
	x := new(index)
	require.False(t, x.insert(fakeRegion(1<<addrBits, 8, 0)))
	require.False(t, x.insert(fakeRegion(1<<addrBits-4, 8, 0)))
	require.True(t, x.insert(fakeRegion(1<<addrBits-8, 8, 0)))
	require.NotNil(t, x.find(1<<addrBits-8, 1<<addrBits, 0))
	require.Nil(t, x.find(1<<addrBits, 1<<addrBits+1, 0))
}

func BenchmarkFind(b *testing.B) {
	for _, regions := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(regions), func(b *testing.B) {
			x := new(index)
			var all []*Region
			for i := range regions {
				r := fakeRegion(0xc000_0000_00+uint64(i)*32<<10, 16<<10, 0)
				x.insert(r)
				all = append(all, r)
			}
			// A few are in use at a time, whatever the number that is registered.
			var hot [8]*Region
			for i := range hot {
				hot[i] = all[(i*7919)%regions]
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r := hot[i&7]
				if x.find(r.lo+64, r.hi, 0) == nil {
					b.Fatal("lost")
				}
				i++
			}
		})
	}
}
