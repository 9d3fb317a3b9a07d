package foresight

import "gopgas/firehose"

// Costs are what a prediction is weighed by, in nanoseconds.
type Costs struct {
	Miss float64 // of a move, which a use that misses waits for; 0: unknown
	Tell float64 // of a use that is told, to its caller and to the helper together; 0: DefaultTell
}

// DefaultTell is a time stamp, two look-ups and an entry of a queue for the caller, and half a microsecond for the helper.
const DefaultTell = 650

// Outcome is what a use found.
type Outcome uint8

// The outcomes.
const (
	Held   Outcome = iota // its bucket, from earlier uses
	Saved                 // its bucket, held or on its way, because that was asked for ahead
	Missed                // no bucket: it waits for a move
)

// OutcomeOf is what a request has found that is Ready or Waiting.
func OutcomeOf(q *firehose.Request) Outcome {
	switch {
	case q.Missed():
		return Missed
	case q.Foreseen():
		return Saved
	}
	return Held
}

// Seen counts uses by what they found.
type Seen struct{ Uses, Saved, Missed int }

func (s *Seen) add(o Outcome) {
	s.Uses++
	switch o {
	case Saved:
		s.Saved++
	case Missed:
		s.Missed++
	}
}

// MissRate is the part of uses that missed.
func (s Seen) MissRate() float64 { return float64(s.Missed) / float64(max(1, s.Uses)) }

// Worth reports whether uses that were told have repaid that: by the misses that they did not have, where untold ones miss at a rate. What
// is asked for ahead is not all of it: who knows the next uses also gives up what is needed last. But where nothing asked for ahead was
// ever used there was nothing to know.
func Worth(told Seen, rate float64, c Costs) bool {
	tell := c.Tell
	if tell == 0 {
		tell = DefaultTell
	}
	if c.Miss == 0 {
		return true // W2
	}
	return told.Saved > 0 && (rate*float64(told.Uses)-float64(told.Missed))*c.Miss >= float64(told.Uses)*tell
}

// Back is what it takes at most to get a bucket of so many bytes again that was given up, in nanoseconds: the move may wait for one before
// it, and the owner registers all of the bucket.
func Back(c firehose.Costs, bytes int64) float64 {
	return 2*c.RoundTrip + c.Register + float64(bytes)*c.RegisterByte
}

// A trial is never shorter than leastTrial uses, else some rounds through all known places long, and fewer where nothing was saved by then; a
// rest is so many trials, doubled at each failure in a row until it is longestRest of them. The first one is leastTrial uses.
const (
	leastTrial  = 64
	rounds      = 4
	hopeless    = 3
	longestRest = 16
)

// Trial is how many uses of a site are looked at where so many places are known.
func Trial(places int) int { return max(leastTrial, rounds*places) }

// site is what is known of the call sites that share a hash.
type site struct {
	on    bool // told of
	seen  Seen // in this trial or rest
	rate  float64
	left  int // uses of a rest that are still to come; 0: it has not begun
	pause int // the last rest, in trials; 0: the last trial paid
}

// use takes in a use, and reports whether it is told.
func (s *site) use(o Outcome, places int, c Costs) bool {
	if c.Miss == 0 {
		return true
	}
	s.seen.add(o)
	if !s.on {
		if s.left == 0 {
			s.left = leastTrial
		}
		if s.left--; s.left == 0 {
			s.on, s.rate, s.seen = true, s.seen.MissRate(), Seen{}
		}
		return false
	}
	if n := s.seen.Uses; n >= Trial(places) || s.seen.Saved == 0 && n >= max(leastTrial, hopeless*places) {
		if Worth(s.seen, s.rate, c) {
			s.pause = 0
		} else {
			s.pause = min(longestRest, max(1, 2*s.pause))
			s.on, s.left = false, s.pause*n
		}
		s.seen = Seen{}
	}
	return true
}
