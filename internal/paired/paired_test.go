package paired

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRank: the ends of the interval as tables of the binomial distribution have them. Of 6 throws none is heads in 1/64 = 1.6 % of all cases, of 10
// one at most in 11/1024 = 1.1 and two at most in 5.5 %, of 100 39 at most in 1.8 and 40 at most in 2.8 %.
func TestRank(t *testing.T) {
	for n, want := range map[int]int{1: 1, 3: 1, 5: 1, 6: 1, 8: 1, 9: 2, 10: 2, 12: 3, 20: 6, 40: 14, 100: 40, 1000: 469} {
		require.Equal(t, want, rank(n), "%d values", n)
	}
	require.InDelta(t, 252.0/1024, heads(10, 5), 1e-12)
}

// TestQuotient: what disturbs both of a pair does not count.
func TestQuotient(t *testing.T) {
	var base, other []float64
	for i := range 100 {
		slow := 1 + 50*math.Mod(float64(i)*0.618, 1) // somebody else's doing
		base = append(base, slow)
		other = append(other, slow*(1+float64(i+1)/1000))
	}
	got := Quotient(base, other)
	require.InDelta(t, 1.0505, got.Median, 1e-9)
	require.InDelta(t, 1.040, got.Low, 1e-9, "the 40th of 100")
	require.InDelta(t, 1.061, got.High, 1e-9, "the 61st")
	p := got.Percent()
	require.InDelta(t, 5.05, p.Median, 1e-9)
	require.InDelta(t, 4.0, p.Low, 1e-9)
	s := got.Saved()
	require.InDelta(t, -6.1, s.Low, 1e-9)
	require.InDelta(t, -4.0, s.High, 1e-9)

	require.Equal(t, Interval{1, 1, 1}, Quotient(base, base))
	require.Equal(t, Interval{}, Quotient(nil, base))
	require.Equal(t, Interval{}, Quotient(nil, nil).Percent())
	require.Equal(t, Interval{2, 1, 3}, Quotient([]float64{1, 1, 1, 9}, []float64{3, 1, 2}), "few: all of them")
	require.Equal(t, "2 [1–3]", Interval{2, 1, 3}.String())
}

// TestIntervalHoldsTheMedian: drawn again and again from a lopsided distribution whose median is 1, the interval holds it 95 times of a hundred or more.
func TestIntervalHoldsTheMedian(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{6, 11, 30, 100} {
		held, ones := 0, make([]float64, n)
		other := make([]float64, n)
		const draws = 2000
		for range draws {
			for i := range other {
				ones[i], other[i] = 1, r.ExpFloat64()/math.Ln2
			}
			if q := Quotient(ones, other); q.Low <= 1 && 1 <= q.High {
				held++
			}
		}
		require.Greater(t, held, draws*94/100, "%d pairs", n) // of 95 % four deviations less
	}
}

// TestTurns: all take part in each round, and in as many rounds as it takes each comes at each place, and behind each other one, equally often.
func TestTurns(t *testing.T) {
	for n := 1; n <= 9; n++ {
		rounds := n * (1 + n%2)
		places, behind := map[[2]int]int{}, map[[2]int]int{}
		for round := range 3 * rounds {
			seen := map[int]bool{}
			last := -1
			for place := range n {
				i := Turn(n, round, place)
				seen[i] = true
				places[[2]int{i, place}]++
				if last >= 0 {
					behind[[2]int{last, i}]++
				}
				last = i
			}
			require.Len(t, seen, n)
		}
		for at, times := range places {
			require.Equal(t, 3*rounds/n, times, "%d of %d at place %d", at[0], n, at[1])
		}
		require.Len(t, behind, n*(n-1))
		for pair, times := range behind {
			require.Equal(t, 3*rounds/n, times, "of %d, %d behind %d", n, pair[1], pair[0])
		}
	}
}
