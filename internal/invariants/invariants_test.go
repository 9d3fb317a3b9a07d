package invariants

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	require.NotPanics(t, func() { Check(true, "never said") })
	broken := func() { Check(false, "free count is %d", -1) }
	if Enabled {
		require.PanicsWithValue(t, "bug: free count is -1", broken)
	} else {
		require.NotPanics(t, broken)
	}
}

func TestSometimes(t *testing.T) {
	const rounds = 10_000
	count := func(percent int) (n int) {
		for range rounds {
			if Sometimes(percent) {
				n++
			}
		}
		return n
	}
	require.Zero(t, count(0))
	if !Enabled {
		require.Zero(t, count(100))
		return
	}
	require.Equal(t, rounds, count(100))
	// 30 % of 10 000 throws has a standard deviation of 46: ten of them either way never happens by chance.
	require.InDelta(t, 3000, count(30), 460)
}

func TestMangle(t *testing.T) {
	const text = "released"
	b := []byte(text)
	Mangle(b[:4])
	require.Equal(t, text[4:], string(b[4:]), "only what was given back is spoiled")
	if Enabled {
		require.Equal(t, bytes.Repeat([]byte{spoil}, 4), b[:4])
	} else {
		require.Equal(t, text, string(b))
	}
	Mangle(nil)
}
