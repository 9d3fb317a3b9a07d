package predict

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// slowCycle is the definition: the shortest m for which the window's two subsequences are identical.
func slowCycle(stream []uint64, window int) int {
	if len(stream) < window {
		return 0
	}
	w := stream[len(stream)-window:]
	for m := 1; m <= window/2; m++ {
		same := true
		for i := m; i < window && same; i++ {
			same = w[i] == w[i-m]
		}
		if same {
			return m
		}
	}
	return 0
}

func TestCycleByTheDefinition(t *testing.T) {
	for _, window := range []int{2, 8, 9, 64} {
		for length := 1; length <= 12; length++ {
			c := newCycle(window)
			var stream []uint64
			for i := range 300 {
				sig := uint64(i % length)
				if i == 150 {
					sig = 99 // the pattern is disturbed once
				}
				stream = append(stream, sig)
				next, ok := c.next(sig, Nanos(i)*10)
				m := slowCycle(stream, window)
				require.Equal(t, m > 0, ok, "window %d, pattern of %d, call %d", window, length, i)
				if ok && m == length {
					require.Equal(t, Nanos(i+length)*10, next)
				}
			}
		}
	}
}

func TestCyclePredictsTheNextUseInsideThePattern(t *testing.T) {
	c := newCycle(8) // a a b c, a comes again after 1 and after 3
	var got []Nanos
	at := []Nanos{0, 10, 30, 60}
	for i := range 16 {
		next, ok := c.next([]uint64{1, 1, 2, 3}[i%4], Nanos(i/4)*100+at[i%4])
		if i < 7 {
			require.False(t, ok, "needs a full window")
		} else if i >= 12 {
			require.True(t, ok)
			got = append(got, next-Nanos(i/4)*100)
		}
	}
	require.Equal(t, []Nanos{10, 100, 130, 160}, got)
}

func TestCycleByTheMean(t *testing.T) {
	latest, mean := newCycle(8), newCycle(8)
	mean.mean = true
	var a, b Nanos
	at := Nanos(0)
	for i := range 24 { // two calls by turns; one period of the twelve is longer
		if at += 10; i == 17 {
			at += 6
		}
		a, _ = latest.next(uint64(i%2), at)
		b, _ = mean.next(uint64(i%2), at)
		switch i {
		case 16:
			require.Equal(t, [2]Nanos{at + 20, at + 20}, [2]Nanos{a, b})
		case 17:
			require.Equal(t, [2]Nanos{at + 26, at + (20+20+26)/3}, [2]Nanos{a, b})
		case 23: // the window begins with the call after the long step
			require.Equal(t, [2]Nanos{at + 20, at + 20}, [2]Nanos{a, b})
		}
	}
}

func TestPeriodicityLearnsSlower(t *testing.T) {
	hits := func(periodicity int) (n int) {
		c := worked()
		c.Periodicity = periodicity
		b := newBench(t, c)
		for i := range 100 {
			b.until(Nanos(i)*ms).call(1, uint64(100+i%4), 10)
		}
		for _, h := range b.hits {
			if h {
				n++
			}
		}
		return n
	}
	short, long := hits(8), hits(64)
	require.Greater(t, hits(0), short)
	require.Greater(t, short, long)
	require.Equal(t, 100-64-3, long, "predicts from the 64th call on, the first use of each prediction is 4 calls later")
}
