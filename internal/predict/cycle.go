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
	mean  bool // predict by the mean of all repetitions in the window, not by the latest
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
		if c.sigs[(before+j)%n] == sig {
			return at + c.interval(before, j, period), true
		}
	}
	return 0, false
}

// interval returns how long after the call numbered before the one that came j calls later was made: the latest time, or
// the mean over all repetitions that the window still holds.
func (c *cycle) interval(before, j, period int) Nanos {
	n := len(c.sigs)
	oldest := before
	if c.mean {
		oldest = max(0, c.calls-n)
	}
	var sum, times Nanos
	for b := before; b >= oldest; b -= period {
		sum += c.at[(b+j)%n] - c.at[b%n]
		times++
	}
	return sum / times
}
