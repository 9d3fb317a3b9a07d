package predict

// cycle is the periodicity-based predictor: it looks for the shortest number of calls m after which the stream of calls
// repeats itself, comparing the window's subsequence with the one shifted by m samples. It predicts only from a full
// window that holds the pattern at least twice. Make one with newCycle.
//
// Instead of comparing whole subsequences at each call it keeps, for each m, how long the latest run of calls is that
// equal the one m before: the subsequences are identical when that run covers the window but for its first m.
type cycle struct {
	sigs  []uint64 // ring of the latest calls
	at    []Nanos
	runs  []int // by shift
	calls int
}

// newCycle returns the predictor with a window of that many calls.
func newCycle(window int) *cycle {
	window = max(window, 2)
	return &cycle{sigs: make([]uint64, window), at: make([]Nanos, window), runs: make([]int, window/2+1)}
}

// next takes in a call and returns when the same call comes next, if the stream is periodic: as long after this one as
// it did a period ago.
func (c *cycle) next(sig uint64, at Nanos) (Nanos, bool) {
	n, period := len(c.sigs), 0
	for m := 1; m < len(c.runs); m++ {
		if m <= c.calls && c.sigs[(c.calls-m)%n] == sig {
			c.runs[m]++
		} else {
			c.runs[m] = 0
		}
		if period == 0 && c.calls+1 >= n && c.runs[m] >= n-m {
			period = m
		}
	}
	here := c.calls
	c.sigs[here%n], c.at[here%n] = sig, at
	c.calls++
	if period == 0 {
		return 0, false
	}
	before := here - period
	for j := 1; j <= period; j++ {
		if i := (before + j) % n; c.sigs[i] == sig {
			return at + c.at[i] - c.at[before%n], true
		}
	}
	return 0, false
}
