package launch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExpand(t *testing.T) {
	at := place{rank: 7, size: 12, host: "a.b", job: "pgas-1", stream: "err"}
	for pattern, want := range map[string]string{
		"": "", "out": "out", "out.%r": "out.7", "%3r/%02n": "007/12", "%h-%j.%s%%%%": "a.b-pgas-1.err%%",
		"[%t] ": "[" + timeMark + "] ", "ä%rö": "ä7ö",
	} {
		got, err := expand(pattern, at)
		require.NoError(t, err)
		require.Equal(t, want, got, pattern)
	}
	for _, bad := range []string{"%", "a%", "%3", "%x", "%99r", "%é"} {
		require.Error(t, CheckPattern(bad, false), bad)
	}
	require.NoError(t, CheckPattern("%t", false))
	require.ErrorContains(t, CheckPattern("%t", true), "cannot have the time")
	require.Equal(t, "[03:04:05.060] ", prefixAt("["+timeMark+"] ", time.Date(2001, 1, 2, 3, 4, 5, 6e7, time.UTC)))
}
