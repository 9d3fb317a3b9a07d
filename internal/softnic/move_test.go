package softnic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

func TestGatherAndScatter(t *testing.T) {
	for _, lens := range [][]int{{8}, {4}, {3}, {1, 7}, {4, 4}, {8, 8}, {0, 8}, {2, 2}, {100, 1, 27}, {}} {
		for _, off := range []int{0, 4, 3} {
			src, dst := mem.Of(make([]uint64, 64)), mem.Of(make([]uint64, 64))
			var list, back []transport.SGE
			at, sum := 1, 0
			for _, n := range lens {
				list = append(list, transport.SGE{Mem: src.Slice(at, n)})
				back = append(back, transport.SGE{Mem: src.Slice(256+at, n)})
				for i := range n {
					src.Data()[at+i] = byte(sum + i + 1)
				}
				at += n + 3
				sum += n
			}
			require.Equal(t, sum, Total(list))
			Gather(dst.Slice(off, sum), list)
			for i := range sum {
				require.Equal(t, byte(i+1), dst.Data()[off+i], "%v at %d", lens, off)
			}
			require.Zero(t, dst.Data()[off+sum])
			Scatter(back, dst.Slice(off, sum))
			require.Equal(t, src.Data()[:256], src.Data()[256:512], "%v at %d", lens, off)
		}
	}
}

func TestApply(t *testing.T) {
	word := mem.Of(make([]uint64, 1))
	word.Word64(0).Store(^uint64(0))
	require.Equal(t, ^uint64(0), Apply(transport.OpFetchAdd, word, 3, 0))
	require.EqualValues(t, 2, Apply(transport.OpCompareSwap, word, 1, 9))
	require.EqualValues(t, 2, Apply(transport.OpCompareSwap, word, 2, 9))
	require.EqualValues(t, 9, word.Word64(0).Load())
}
