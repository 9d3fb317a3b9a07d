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
