package pair

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport/sim"
)

// TestNeitherEndRegistered: what goes through leases costs a little more than what the NIC moves by itself, less the longer it is, in both
// directions; and twice the same comes out.
func TestNeitherEndRegistered(t *testing.T) {
	rows, err := Compare(t.Context(), sim.Graphene(), []int{Least, 256 << 10, 1 << 20})
	require.NoError(t, err)
	again, err := Compare(t.Context(), sim.Graphene(), []int{Least, 256 << 10, 1 << 20})
	require.NoError(t, err)
	require.Equal(t, rows, again)
	require.Len(t, rows, 6)
	least := map[string]float64{"put": 0.6, "get": 0.6}
	for _, r := range rows {
		t.Logf("%s of %d bytes: %.3f", r.Way, r.Bytes, r.Share)
		require.Greater(t, r.Share, least[r.Way])
		require.Less(t, r.Share, 1.0)
		least[r.Way] = r.Share
	}
}

// TestSmallTakesNoLease: sizes below the least are refused with what happened.
func TestSmallTakesNoLease(t *testing.T) {
	_, err := Compare(t.Context(), sim.Graphene(), []int{Least - 1})
	require.ErrorContains(t, err, "0 of 4 transfers")
}
