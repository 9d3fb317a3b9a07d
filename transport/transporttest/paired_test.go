package transporttest_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport/transporttest"
)

// TestMeasure: what is compared runs by turns, forwards and backwards, and a failure ends it.
func TestMeasure(t *testing.T) {
	var order strings.Builder
	step := func(name string) func(n int) error {
		return func(n int) error {
			require.Equal(t, 5, n)
			order.WriteString(name)
			return nil
		}
	}
	var out strings.Builder
	require.NoError(t, transporttest.Measure(&out, 3, []transporttest.Contest{{Name: "a put", Each: 5, Ours: step("o"), Raw: step("r")}}))
	require.Equal(t, strings.Repeat("ror", 4), order.String())
	order.Reset()
	require.NoError(t, transporttest.Measure(&strings.Builder{}, 1, []transporttest.Contest{{Name: "a put", Each: 5, Blocks: 3, Ours: step("o"), Raw: step("r")}}))
	require.Equal(t, strings.Repeat("ror", 6), order.String(), "blocks of a turn, and of the one that is not counted")
	require.Regexp(t, regexp.MustCompile(`^\| us for one \| ours \| raw \| raw again \|[^\n]*\n[^\n]*\n(?:\| a put(?: \| \S+ \(\S+–\S+\)){3}(?: \| \S+ \[\S+–\S+\]){2} \|\n)$`), out.String())

	wrong := errors.New("wrong")
	err := transporttest.Measure(&out, 1, []transporttest.Contest{{Name: "a get", Each: 1, Ours: func(int) error { return wrong }, Raw: func(int) error { return nil }}})
	require.ErrorIs(t, err, wrong)
	require.ErrorContains(t, err, "a get")
}
