package paired

import (
	"fmt"
	"math"
	"slices"
)

// outside is the probability that an interval may leave on either side.
const outside = 0.025

// Interval is a median of quotients with the ends of its 95 % interval. The zero Interval is that of no pairs.
type Interval struct{ Median, Low, High float64 }

// Quotient returns by what factor the values of other are greater than those of base, pair by pair. Values without a partner do not count.
func Quotient(base, other []float64) Interval {
	q := make([]float64, min(len(base), len(other)))
	for i := range q {
		q[i] = other[i] / base[i]
	}
	return Of(q)
}

// Of returns the interval of the median of values that are quotients already. It sorts a copy.
func Of(quotients []float64) Interval {
	n := len(quotients)
	if n == 0 {
		return Interval{}
	}
	q := slices.Sorted(slices.Values(quotients))
	k := rank(n)
	return Interval{Median: (q[(n-1)/2] + q[n/2]) / 2, Low: q[k-1], High: q[n-k]}
}

// rank returns for n values which of them, from either end, are the ends of the interval of their median: at least 1.
func rank(n int) int {
	below := 0.0 // the probability of fewer than k heads
	for k := 1; ; k++ {
		if below += heads(n, k-1); below > outside {
			return max(1, k-1)
		}
	}
}

// heads is the probability of k heads of n throws of a coin.
func heads(n, k int) float64 {
	return math.Exp(logFactorial(n) - logFactorial(k) - logFactorial(n-k) - float64(n)*math.Ln2)
}

func logFactorial(n int) float64 {
	v, _ := math.Lgamma(float64(n) + 1)
	return v
}

// Percent is the interval as a part more than 1, in percent: 1.03 is 3.
func (i Interval) Percent() Interval {
	if i == (Interval{}) {
		return i
	}
	return Interval{Median: 100 * (i.Median - 1), Low: 100 * (i.Low - 1), High: 100 * (i.High - 1)}
}

// Saved is the interval as a part less than 1, in percent: 0.97 is 3. Its ends change places.
func (i Interval) Saved() Interval {
	p := i.Percent()
	return Interval{Median: -p.Median, Low: -p.High, High: -p.Low}
}

// String is the median with the ends of the interval, to three digits.
func (i Interval) String() string { return fmt.Sprintf("%.3g [%.3g–%.3g]", i.Median, i.Low, i.High) }
