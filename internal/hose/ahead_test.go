package hose

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/regmgr"
)

// TestNothingIsToldWithoutPressure: as long as all buckets that were used are held no use can miss, and the predictor hears of none.
func TestNothingIsToldWithoutPressure(t *testing.T) {
	p := newPairOf(t, regmgr.Config{Policy: regmgr.Predictive, Ahead: &regmgr.Ahead{}})
	h := p.set[0]
	require.NoError(t, h.Fix(h.Unit()))
	share := int(h.Budget().Share)
	use := func(buckets int) {
		for range 3 {
			for i := range buckets {
				_, direct, _, err := h.Attach("put", 0, p.far, p.addr(i*int(h.Unit())), 8, nil, false)
				require.NoError(t, err)
				require.True(t, direct)
				p.release(0)
			}
		}
	}
	use(share - 1) // the memory may begin within a bucket
	told, untold := h.Foresight()
	require.Zero(t, told+untold)
	use(share + 4)
	told, untold = h.Foresight()
	require.Positive(t, told+untold)
	p.end(t)
}
