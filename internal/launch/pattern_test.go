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

func TestLists(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []int
		out  string
	}{
		{"0", []int{0}, "0"}, {"0,2-4", []int{0, 2, 3, 4}, "0,2-4"}, {"5-6, 1,1-2", []int{5, 6, 1, 2}, "1-2,5-6"},
	} {
		got, err := ParseList(c.in, 7)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		require.Equal(t, c.out, list(got))
	}
	for _, bad := range []string{"", "x", "7", "3-1", "-1", "1-", "0,,1", "0-9999999999"} {
		_, err := ParseList(bad, 7)
		require.ErrorContains(t, err, "from 0 to 6", bad)
	}
}

func TestBindings(t *testing.T) {
	cpus := []cpu{{0, 0, 0}, {1, 1, 0}, {2, 2, 1}, {3, 3, 1}, {4, 0, 0}, {5, 1, 0}, {6, 2, 1}, {7, 3, 1}}
	for _, c := range []struct {
		b    Binding
		n    int
		want [][]int
	}{
		{BindNone, 2, [][]int{nil, nil}},
		{BindCore, 2, [][]int{{0, 4}, {1, 5}}},
		{BindCore, 5, [][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 4}}},
		{BindNUMA, 1, [][]int{{0, 1, 4, 5}}},
		{BindNUMA, 3, [][]int{{0, 1, 4, 5}, {0, 1, 4, 5}, {2, 3, 6, 7}}},
	} {
		require.Equal(t, c.want, bindings(c.b, c.n, cpus))
	}
	require.Equal(t, "is bound to processors 2,6 of memory node 1", describeBinding([]int{2, 6}, cpus))
	require.Equal(t, "is not bound: processors 0-7", describeBinding(nil, cpus))
}
