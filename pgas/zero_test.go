package pgas

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestZeroOf: the clocks are compared by a reading at which the program kept its core, not by one that took long on either side.
func TestZeroOf(t *testing.T) {
	const zero = 1_000_000
	var now time.Duration
	reads := 0
	own := func() time.Duration {
		if reads++; reads%3 != 0 { // away for long before or behind most readings of the shared clock
			now += time.Millisecond
		}
		now += 40
		return now
	}
	shared := func() int64 { now += 40; return zero + int64(now) }
	require.InDelta(t, zero, zeroOf(shared, own), 60)
}
