package proto

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWholeRuns: joined runs cover the same bytes in the same order, and no two neighbours could be joined further.
func TestWholeRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	remotes := make([]Remote, 2)
	type unit struct {
		to        *Remote
		far, near int
	}
	units := func(runs []Run) (out []unit) {
		for _, r := range runs {
			for i := range r.Bytes {
				out = append(out, unit{r.To, r.Far + i, r.Near + i})
			}
		}
		return out
	}
	for range 500 {
		runs := make([]Run, rng.IntN(8))
		for i := range runs {
			runs[i] = Run{To: &remotes[rng.IntN(2)], Far: rng.IntN(4), Near: rng.IntN(4), Bytes: rng.IntN(3)}
			if i > 0 && rng.IntN(2) == 0 { // continues the one before, at both ends or at one
				b := runs[i-1]
				runs[i] = Run{To: b.To, Far: b.Far + b.Bytes, Near: b.Near + b.Bytes + rng.IntN(2), Bytes: rng.IntN(3)}
			}
		}
		var got []Run
		for i := 0; i < len(runs); {
			var r Run
			r, i = whole(len(runs), i, func(k int) Run { return runs[k] })
			if n := len(got); n > 0 {
				require.False(t, got[n-1].joins(r))
			}
			got = append(got, r)
		}
		require.Equal(t, units(runs), units(got))
	}
}
