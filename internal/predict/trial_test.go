package predict

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTrial: what is measured is what a predictor does of uses at sites that it knows, which makes no garbage.
func TestTrial(t *testing.T) {
	for _, sites := range []int{1, 64} {
		f := Trial(sites)
		require.Zero(t, testing.AllocsPerRun(1000, f))
	}
}

func BenchmarkHash(b *testing.B) {
	f := Trial(512)
	for b.Loop() {
		f()
	}
}
