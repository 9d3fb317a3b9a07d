package replay

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/cost"
	"gopgas/regmgr"
)

// TestPreferredPolicyIsAhead: which policy regmgr prefers by costs, budget and cores is the one with which the program runs no longer.
func TestPreferredPolicyIsAhead(t *testing.T) {
	const size = 4 << 20
	files := synth(t, "reuse", ShapeConfig{Ranks: 1}) // three buffers
	for _, name := range cost.Names() {
		model, err := cost.Named(name)
		require.NoError(t, err)
		for limit, memory := range map[int64]int64{0: 64 << 20, 2*size + size/2: 64 << 20, 4 * size: 48 << 20} {
			facts := regmgr.Facts{Idle: 1, Bytes: limit, Memory: memory, Costs: model}
			chosen, _, measure := facts.Prefer()
			require.False(t, measure)
			c := Config{Costs: costs(t, name), Limit: limit}
			c.Policy = LeavePinned
			left := run(t, files, c)
			c.Policy = Predictive
			ahead := run(t, files, c)
			if limit == 2*size+size/2 {
				require.Equal(t, regmgr.Predictive, chosen, "%s: there is room for two", name)
				require.Less(t, 3*ahead.Critical, left.Critical, "%s: what is paid within calls is a third at most", name)
			} else {
				require.Equal(t, regmgr.LeavePinned, chosen, "%s: there is room for all", name)
				require.LessOrEqual(t, left.Critical, ahead.Critical, name)
			}
			require.LessOrEqual(t, ahead.Peak, left.Peak)
			require.Less(t, ahead.Average, left.Average)
		}
	}
}
