package pgastest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorlds(t *testing.T) {
	all := []int{1, 2, 3, 5, 9}
	for _, c := range []struct {
		name    string
		ranks   []int
		most    int
		bounded bool
		race    bool
		want    []int
	}{
		{"tcp", all, 0, false, false, all},
		{"tcp", all, 3, true, false, []int{1, 2, 3}},
		{"tcp", []int{8, 9}, 3, true, false, []int{8}},
		{"tcp", all, 0, false, true, []int{5}},
		{"tcp", all, 3, true, true, []int{3}},
		{"counted", []int{1, 3}, 0, false, true, []int{3}},
		{"soft", []int{8, 9}, 0, false, true, []int{8}},
		{"mapped", all, 0, false, true, all},
		{"nic-good", all, 3, true, true, []int{1, 2, 3}},
		{"tcp", nil, 0, false, true, nil},
	} {
		require.Equal(t, c.want, Named{Name: c.name}.worlds(c.ranks, c.most, c.bounded, c.race), "%+v", c)
	}
}

func TestHalved(t *testing.T) {
	require.Equal(t, []int{2, 5, 13}, halved([]int{1, 2, 3, 5, 8, 13}))
	require.Equal(t, []int{1, 4}, halved([]int{1, 3, 4}))
	require.Equal(t, []int{3}, halved([]int{3}))
	require.Empty(t, halved(nil))
}

// TestEveryFourth: tests share the paths among them, and each has mapped memory and the good NIC.
func TestEveryFourth(t *testing.T) {
	names := func(test string) (list []string) {
		for _, p := range every(4, 0, Paths(), test) {
			list = append(list, p.Name)
		}
		return list
	}
	require.Equal(t, names("TestA"), names("TestA/some/part"), "subtests agree with their test")
	seen := map[string]bool{}
	for _, test := range []string{"TestA", "TestB", "TestC", "TestD", "TestE", "TestF"} {
		some := names(test)
		require.Subset(t, some, []string{"mapped", "nic-good"})
		require.InDelta(t, 2+(len(Paths())-2)/4, len(some), 1)
		for _, p := range some {
			seen[p] = true
		}
	}
	require.Len(t, seen, len(Paths()), "no path is left to nobody")
}

// TestBuildsShareThePaths: what race builds leave out of a test's paths, other builds have.
func TestBuildsShareThePaths(t *testing.T) {
	for _, all := range [][]Named{Paths(), Fabrics()} {
		for _, test := range []string{"TestA", "TestB", "TestC", "TestD", "TestE", "TestF"} {
			raced, other := pathsOf(test, all, true, true), pathsOf(test, all, false, false)
			require.Subset(t, append(raced, other...), all, test)
			require.Less(t, len(raced), len(all), test)
			require.Less(t, len(other), len(all), test)
		}
	}
}
