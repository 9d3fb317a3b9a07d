package transporttest

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

var atomicChecks = []check{
	{"Post/fetch-add and compare-swap", testAtomics},
	{"Post/atomics are exact under contention", testContention},
	{"Post/atomics and the CPU's on one word", testCPUAtomics},
}

func testAtomics(t *testing.T, s *suite) {
	need(t, s.caps.Atomics64, "atomics")
	a, b := s.pair(t, 4096)
	const word, old = 128, 256
	b.mem.Word64(word - 8).Store(^uint64(0))
	b.mem.Word64(word + 8).Store(^uint64(0))
	model := uint64(1<<63 + 5)
	a.mem.Word64(0).Store(model)
	a.must(a.op(transport.OpWrite, 1, 0, word, 8))
	for i, arg := range []uint64{0, 1, 1 << 40, ^uint64(0), 1 << 63, 3} {
		add := a.op(transport.OpFetchAdd, 1, old, word, 8)
		add.Arg0 = arg
		require.EqualValues(t, 8, a.must(add).Bytes)
		require.Equal(t, model, a.mem.Word64(old).Load(), "old value of add %d", i)
		model += arg

		swap := a.op(transport.OpCompareSwap, 1, old, word, 8)
		swap.Arg0, swap.Arg1 = model+1, 99 // does not fit
		a.must(swap)
		require.Equal(t, model, a.mem.Word64(old).Load(), "old value of a swap that does not fit")
		require.Equal(t, model, a.read8(1, word))

		swap = a.op(transport.OpCompareSwap, 1, old, word, 8)
		swap.Arg0, swap.Arg1 = model, model*0x9e3779b97f4a7c15+1
		a.must(swap)
		require.Equal(t, model, a.mem.Word64(old).Load(), "old value of a swap that fits")
		model = swap.Arg1
		require.Equal(t, model, a.read8(1, word))
	}
	require.Equal(t, ^uint64(0), b.mem.Word64(word-8).Load())
	require.Equal(t, ^uint64(0), b.mem.Word64(word+8).Load())
	a.none()
}

// testContention has every rank, the owner too, count on one word through the NIC, with swaps in between.
func testContention(t *testing.T, s *suite) {
	need(t, s.caps.Atomics64, "atomics")
	const ranks, word, swapped, old = 4, 0, 64, 1024
	r := s.rig(t, ranks, 4096)
	each := s.opt.Ops / 4
	seen, wins := make([]uint64, ranks), make([]uint64, ranks)
	together(t, ranks, func(i int) error {
		n := r.nodes[i]
		if _, err := n.dial(0); err != nil {
			return err
		}
		for k := range each {
			op := n.op(transport.OpFetchAdd, 0, old, word, 8)
			op.Arg0 = uint64(i + 1)
			if k%4 == 0 {
				op.Kind = transport.OpCompareSwap // add one to the other word, if nobody is faster
				op.RAddr += swapped
				op.Arg0, op.Arg1 = seen[i], seen[i]+1
			}
			if err := n.tryPost(op); err != nil {
				return err
			}
			c, err := n.tryWait(op.Cookie)
			if err != nil {
				return err
			}
			if c.Status != transport.StatusOK {
				return fmt.Errorf("rank %d: atomic %d ended with status %d", i, k, c.Status)
			}
			if k%4 == 0 {
				found := n.mem.Word64(old).Load()
				switch {
				case found < seen[i]:
					return fmt.Errorf("a word that only grows went from %d back to %d", seen[i], found)
				case found == seen[i]:
					wins[i]++
					found++
				}
				seen[i] = found
			}
		}
		return nil
	})
	adds := uint64(each - (each+3)/4)
	var sum, won uint64
	for i := range ranks {
		sum += uint64(i+1) * adds
		won += wins[i]
	}
	a := r.nodes[0]
	require.Equal(t, sum, a.read8(0, word), "an addition was lost or done twice")
	require.Equal(t, won, a.read8(0, swapped), "as many swaps must have happened as were seen to")
}

// testCPUAtomics mixes both on one word, where Caps promise that this is allowed.
func testCPUAtomics(t *testing.T, s *suite) {
	need(t, s.caps.AtomicsCPU, "atomics that the CPU's may be mixed with")
	a, b := s.pair(t, 4096)
	a.ep(1)
	word := b.mem.Word64(0)
	each := s.opt.Ops
	together(t, 2, func(i int) error {
		if i == 1 {
			for k := range each {
				word.Add(1)
				if k%8 == 0 {
					runtime.Gosched()
				}
			}
			return nil
		}
		for range each {
			op := quiet(a.op(transport.OpFetchAdd, 1, 1024, 0, 8))
			op.Arg0 = 1 << 32
			if err := a.tryPost(op); err != nil {
				return err
			}
		}
		last := a.op(transport.OpRead, 1, 1032, 0, 8)
		if err := a.tryPost(last); err != nil {
			return err
		}
		_, err := a.tryWait(last.Cookie)
		return err
	})
	require.Equal(t, uint64(each)<<32+uint64(each), word.Load())
}
