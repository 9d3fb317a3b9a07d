//go:build invariants

package regmgr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBugsPanic: in this build a reference that is dropped twice, or a charge that is given back twice, ends the test that does it.
func TestBugsPanic(t *testing.T) {
	var r Region
	r.word.Store(word(ready, 1, 7))
	require.True(t, r.unref(8))
	require.Panics(t, func() { r.unref(9) })

	b := NewBudget(0, 0, func() time.Duration { return 0 })
	require.True(t, b.lend(4096, 1))
	b.unlend(4096, 1)
	require.Panics(t, func() { b.unlend(4096, 1) })
}
