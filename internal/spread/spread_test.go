package spread

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
)

// scattered makes a spread of total bytes over memory of its own, in rows, in columns or at random, and returns the places of its bytes.
func scattered(rng *rand.Rand, total int) (s *Spread, all mem.Range, places []int) {
	all = mem.Of(make([]uint64, total/2+200)).Slice(rng.IntN(8), 4*total+1000)
	s = New(all)
	add := func(off, n int) {
		s.Add(off, n)
		for i := range n {
			places = append(places, off+i)
		}
	}
	long, kind := 1+rng.IntN(40), rng.IntN(3)
	if kind == 1 {
		long = 1 + rng.IntN(6000)
	}
	at, step := rng.IntN(100), 1+rng.IntN(3)
	for len(places) < total {
		n := min(long, total-len(places))
		if kind == 2 {
			n = min(1+rng.IntN(long), n)
		}
		add(at, n)
		switch kind {
		case 0:
			at += n * step // step 1: they adjoin
		case 1:
			at += n + n/2
		default:
			at += n + rng.IntN(2*n)
		}
	}
	if rng.IntN(4) == 0 { // downwards
		d := New(all)
		places = places[:0]
		last := 3*total - long
		for done := 0; done < total; last -= long + 3 {
			n := min(long, total-done)
			if last < 0 {
				last = 3*total + 500
			}
			d.Add(last, n)
			for i := range n {
				places = append(places, last+i)
			}
			done += n
		}
		s = d
	}
	return s, all, places
}

// TestSpreadsAsTold: what is told of a layout is the layout, from whatever base, and gathers and scatters the same bytes in any portions.
func TestSpreadsAsTold(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for range 60 {
		s, all, places := scattered(rng, 1+rng.IntN(9000))
		require.Equal(t, len(places), s.Bytes())
		lo, hi := s.Bounds()
		for _, p := range places {
			require.True(t, lo <= p && p < hi)
		}
		told, err := Parse(s.Append(nil, lo), all.Slice(lo, hi-lo))
		require.NoError(t, err)
		require.Equal(t, s.Stripes(), told.Stripes())
		require.False(t, s.Fits(len(s.Append(nil, lo))), "another one may come")
		require.True(t, s.Fits(len(s.Append(nil, 0))+3*mostStripe))
		for i := range all.Data() {
			all.Data()[i] = byte(rng.Uint32())
		}
		flat := mem.Of(make([]byte, len(places)))
		var from, to Place
		for at := 0; at < len(places); {
			n := min(1+rng.IntN(5000), len(places)-at)
			told.Gather(&from, flat.Slice(at, n))
			at += n
		}
		for i, p := range places {
			require.Equal(t, all.Data()[p], flat.Data()[i])
		}
		want := append([]byte(nil), all.Data()...)
		for i, p := range places {
			flat.Data()[i] ^= byte(i)
			want[p] = flat.Data()[i]
		}
		for at := 0; at < len(places); {
			n := min(1+rng.IntN(5000), len(places)-at)
			told.Scatter(&to, flat.Slice(at, n))
			at += n
		}
		require.Equal(t, want, all.Data())
	}
}

// TestStripes: rows and columns are one stripe, however many they are, and what adjoins is one piece.
func TestStripes(t *testing.T) {
	s := New(mem.Of(make([]byte, 1<<20)))
	for i := range 1000 {
		s.Add(i*1000, 8)
	}
	require.Equal(t, 1, s.Stripes())
	require.Less(t, len(s.Append(nil, 0)), 12)
	for i := range 100 {
		s.Add(i*16, 16)
	}
	require.Equal(t, 2, s.Stripes())
	for i := range 5 {
		s.Add(900_000-i*700, 4)
	}
	require.Equal(t, 3, s.Stripes())
	require.Equal(t, 8000+1600+20, s.Bytes())
	was := s.Clone()
	s.Reset(mem.Of(make([]byte, 10)))
	require.Zero(t, s.Bytes())
	require.Equal(t, 9620, was.Bytes())
}

// TestSpreadsRefused: no layout that a message tells leaves the memory that it is about, or is longer than a transfer can be.
func TestSpreadsRefused(t *testing.T) {
	of := mem.Of(make([]byte, 1000))
	for name, r := range map[string]stripe{
		"before": {-1, 8, 0, 1}, "behind": {993, 8, 0, 1}, "long": {0, 1001, 0, 1}, "none": {0, 0, 0, 1}, "of none": {0, 8, 8, 0},
		"last behind": {0, 8, 8, 126}, "last before": {500, 8, -8, 64}, "far": {0, 1, math.MaxInt64, 2}, "farther": {0, 1, math.MinInt64, 2},
		"overflow": {0, 1, 1 << 62, 5}, "many": {0, 8, 0, longest / 8 * 2}, "huge": {0, 8, 1, longest + 1},
	} {
		b := (&Spread{runs: []stripe{r}}).Append(nil, 0)
		_, err := Parse(b, of)
		require.ErrorIs(t, err, ErrMalformed, name)
	}
	_, err := Parse(nil, of)
	require.ErrorIs(t, err, ErrMalformed)
	s, err := Parse((&Spread{runs: []stripe{{0, 8, 8, 125}, {992, 8, -8, 125}, {0, 1000, 0, 3}}}).Append(nil, 0), of)
	require.NoError(t, err)
	require.Equal(t, 5000, s.Bytes())
}

// FuzzSpread parses any bytes; what is accepted lies in its memory and is told again as the same.
func FuzzSpread(f *testing.F) {
	f.Add((&Spread{runs: []stripe{{0, 8, 16, 10}, {500, 3, 0, 1}}}).Append(nil, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		of := mem.Of(make([]byte, 4096))
		s, err := Parse(b, of)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		lo, hi := s.Bounds()
		require.True(t, 0 <= lo && lo < hi && hi <= of.Bytes)
		again, err := Parse(s.Append(nil, 0), of)
		require.NoError(t, err)
		require.Equal(t, s.runs, again.runs)
		require.Equal(t, s.bytes, again.bytes)
		if s.Bytes() <= 1<<20 {
			var p Place
			s.Gather(&p, mem.Of(make([]byte, s.Bytes())))
			require.Equal(t, len(s.runs), p.run)
		}
	})
}
