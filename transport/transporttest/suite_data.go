package transporttest

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

var dataChecks = []check{
	{"Post/write sizes", testWriteSizes},
	{"Post/read sizes", testReadSizes},
	{"Post/gather and scatter", testLists},
	{"Post/own rank", testOwnRank},
	{"Post/refused", testRefused},
	{"T6/target computes", testTargetComputes},
	{"T7/inline source", testInlineSource},
}

// sizes are the lengths at which paths change: nothing, odd, a word, inline or not, a page, more, the limit.
func (s *suite) sizes() []int {
	largest := min(s.caps.MaxMessage, s.opt.MaxBytes)
	if s.caps.MaxPinned > 0 {
		largest = min(largest, int(s.caps.MaxPinned)/4)
	}
	in := s.caps.MaxInline
	list := []int{0, 1, 4, 7, 8, in - 1, in, in + 1, 4096, 65537, largest}
	list = slices.DeleteFunc(list, func(n int) bool { return n < 0 || n > largest })
	slices.Sort(list)
	return slices.Compact(list)
}

// guard is what lies untouched on both sides of a transfer in the size tests.
const guard = 64

func (s *suite) room() int { return slices.Max(s.sizes()) + 2*guard + 16 }

// around returns as much of a rank's memory as a transfer of size bytes at off and its guards take.
func (n *node) around(off, size int) mem.Range { return n.mem.Slice(0, off+size+guard) }

func testWriteSizes(t *testing.T, s *suite) {
	a, b := s.pair(t, s.room())
	for i, size := range s.sizes() {
		for _, off := range []int{guard, guard + 3} { // on a boundary and beside one
			for _, flags := range []uint8{0, transport.FlagInline} {
				if flags != 0 && size > s.caps.MaxInline {
					continue
				}
				seed := uint64(i*16 + off)
				mine, its := a.around(off, size), b.around(off, size)
				fill(mine, seed)
				fill(its, ^seed)
				op := a.op(transport.OpWrite, 1, off, off, size)
				op.Flags |= flags
				if flags != 0 {
					op.SGE[0].LKey = ^uint64(0) // not looked at
				}
				a.must(op)
				a.settle(1)
				requirePattern(t, b.mem.Slice(off, size), seed, off, "write of %d bytes at %d, flags %d", size, off, flags)
				requirePattern(t, b.mem.Slice(0, off), ^seed, 0, "before a write of %d bytes", size)
				end := off + size
				requirePattern(t, its.Slice(end, its.Bytes-end), ^seed, end, "behind a write of %d bytes", size)
			}
		}
	}
}

func testReadSizes(t *testing.T, s *suite) {
	a, b := s.pair(t, s.room())
	for i, size := range s.sizes() {
		for _, off := range []int{guard, guard + 5} {
			seed := uint64(i*16 + off)
			mine, its := a.around(off, size), b.around(off, size)
			fill(mine, seed)
			fill(its, ^seed)
			c := a.must(a.op(transport.OpRead, 1, off, off, size))
			require.EqualValues(t, size, c.Bytes)
			requirePattern(t, a.mem.Slice(off, size), ^seed, off, "read of %d bytes at %d", size, off)
			requirePattern(t, a.mem.Slice(0, off), seed, 0, "before a read of %d bytes", size)
			end := off + size
			requirePattern(t, mine.Slice(end, mine.Bytes-end), seed, end, "behind a read of %d bytes", size)
			requirePattern(t, its, ^seed, 0, "the source of a read of %d bytes", size)
		}
	}
}

// testLists gathers from and scatters to lists of pieces that lie in other order than they are sent.
func testLists(t *testing.T, s *suite) {
	const room = 16384
	a, b := s.pair(t, room)
	for _, pieces := range [][]int{{8, 8}, {4, 4}, {1, 7}, {0, 8}, {3, 0, 5, 9}, {64, 1, 2, 2000}, {8, 8, 8, 8}, {1, 1, 1, 1}} {
		if len(pieces) > s.caps.MaxSGE {
			continue
		}
		list := func(op *transport.Op) (places []int) {
			at := room - 8
			for i, n := range pieces {
				at -= n + 3
				op.SGE[i] = a.sge(at, n)
				places = append(places, at)
			}
			op.NSGE = uint8(len(pieces))
			return places
		}
		sum := 0
		for _, n := range pieces {
			sum += n
		}
		for _, flags := range []uint8{0, transport.FlagInline} {
			if flags != 0 && sum > s.caps.MaxInline {
				continue
			}
			fill(a.mem, 1)
			fill(b.mem, 2)
			op := a.op(transport.OpWrite, 1, 0, 128, 0)
			op.Flags |= flags
			places := list(&op)
			a.must(op)
			a.settle(1)
			at := 128
			for i, n := range pieces {
				requirePattern(t, b.mem.Slice(at, n), 1, places[i], "piece %d of %v", i, pieces)
				at += n
			}
			requirePattern(t, b.mem.Slice(at, room-at), 2, at, "behind %v", pieces)
		}
		fill(a.mem, 1)
		fill(b.mem, 2)
		op := a.op(transport.OpRead, 1, 0, 128, 0)
		places := list(&op)
		require.EqualValues(t, sum, a.must(op).Bytes)
		at := 128
		for i, n := range pieces {
			requirePattern(t, a.mem.Slice(places[i], n), 2, at, "scattered piece %d of %v", i, pieces)
			requirePattern(t, a.mem.Slice(places[i]+n, 3), 1, places[i]+n, "behind scattered piece %d of %v", i, pieces)
			at += n
		}
	}
}

func testOwnRank(t *testing.T, s *suite) {
	a := s.rig(t, 1, 4096).nodes[0]
	fill(a.mem, 1)
	a.must(a.op(transport.OpWrite, 0, 0, 1024, 512))
	a.settle(0)
	requirePattern(t, a.mem.Slice(1024, 512), 1, 0, "write to the own rank")
	a.must(a.op(transport.OpRead, 0, 2048, 512, 256))
	requirePattern(t, a.mem.Slice(2048, 256), 1, 512, "read from the own rank")
	if s.caps.Atomics64 {
		word := a.mem.Word64(3072)
		word.Store(5)
		op := a.op(transport.OpFetchAdd, 0, 3080, 3072, 8)
		op.Arg0 = 7
		a.must(op)
		require.EqualValues(t, 5, a.mem.Word64(3080).Load())
		require.EqualValues(t, 12, a.read8(0, 3072))
	}
	a.none()
}

// read8 reads a word of the peer's memory through the NIC, as one must where the CPU's view may be another.
func (n *node) read8(peer, roff int) uint64 {
	n.t.Helper()
	at := n.mem.Bytes - 16
	n.must(n.op(transport.OpRead, peer, at, roff, 8))
	return n.mem.Word64(at).Load()
}

// testRefused posts what can be seen to be wrong from the operation alone. Post says which one it is, what
// stands before it is done, and neither it nor what stands behind it happens.
func testRefused(t *testing.T, s *suite) {
	a, b := s.pair(t, 4096)
	fill(a.mem, 1)
	fill(b.mem, 2)
	far := mem.Range{Base: a.mem.Base, Bytes: s.caps.MaxMessage + 1} // never to be read
	bad := map[string]func(op *transport.Op){
		"no kind":      func(op *transport.Op) { op.Kind = 0 },
		"unknown kind": func(op *transport.Op) { op.Kind = 200 },
		"receive":      func(op *transport.Op) { op.Kind = transport.OpRecv },
		"too long":     func(op *transport.Op) { op.SGE[0].Mem = far },
		"too long read": func(op *transport.Op) {
			op.Kind = transport.OpRead
			op.SGE[0].Mem = far
		},
		"too many pieces": func(op *transport.Op) { op.NSGE = uint8(s.caps.MaxSGE + 1) },
		"inline too long": func(op *transport.Op) {
			op.Flags |= transport.FlagInline
			op.SGE[0].Mem = mem.Of(make([]byte, s.caps.MaxInline+1))
		},
		"no endpoint": func(op *transport.Op) { op.EP = transport.EP{Index: 1 << 30, Incarnation: 1} },
	}
	for name, k := range map[string]transport.Kind{"misaligned fetch-add": transport.OpFetchAdd, "misaligned compare-swap": transport.OpCompareSwap} {
		bad[name] = func(op *transport.Op) {
			op.Kind = k
			op.RAddr = b.mem.Addr() + 4
			op.SGE[0] = a.sge(512, 8)
		}
	}
	if !s.caps.Atomics64 {
		bad["no atomics"] = func(op *transport.Op) { op.Kind, op.SGE[0] = transport.OpFetchAdd, a.sge(512, 8) }
	}
	if !s.caps.Sends {
		bad["no sends"] = func(op *transport.Op) { op.Kind = transport.OpSend }
	}
	if !s.caps.WriteImm {
		bad["no write with immediate"] = func(op *transport.Op) { op.Kind = transport.OpWriteImm }
	}
	for name, spoil := range bad {
		first, second := a.op(transport.OpWrite, 1, 0, 0, 8), a.op(transport.OpWrite, 1, 0, 1024, 8)
		wrong := a.op(transport.OpWrite, 1, 0, 2048, 64)
		spoil(&wrong)
		ops, taken := []transport.Op{first, wrong, second}, 0
		for deadline := time.Now().Add(s.opt.Timeout); ; {
			n, err := a.d.Post(ops[taken:])
			if taken += n; err != nil {
				break
			}
			require.Less(t, taken, 2, "%s: was not refused", name)
			require.False(t, time.Now().After(deadline), "%s: post stays short", name)
		}
		require.Equal(t, 1, taken, name)
		require.Equal(t, transport.StatusOK, a.wait(first.Cookie).Status, name)
	}
	a.must(a.op(transport.OpWrite, 1, 0, 0, 8)) // the endpoint is as good as before
	a.settle(1)
	requirePattern(t, b.mem.Slice(8, b.mem.Bytes-8), 2, 8, "what a refused operation must not touch")
	a.none()
}

// testTargetComputes has the target's program compute without a call into anything while it is read and
// written.
func testTargetComputes(t *testing.T, s *suite) {
	a, _ := s.pair(t, 8192)
	a.ep(1)
	var stop atomic.Bool
	var spun uint64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			spun++
		}
	}()
	defer func() { stop.Store(true); <-done }()
	for i := range 20 {
		fill(a.mem.Slice(0, 1024), uint64(i))
		a.must(a.op(transport.OpWrite, 1, 0, 1024, 1024))
		a.must(a.op(transport.OpRead, 1, 2048, 1024, 1024))
		requirePattern(t, a.mem.Slice(2048, 1024), uint64(i), 0, "read back from a rank that computes")
		if s.caps.Atomics64 {
			op := a.op(transport.OpFetchAdd, 1, 4096, 0, 8)
			op.Arg0 = 1
			a.must(op)
			require.EqualValues(t, i, a.mem.Word64(4096).Load())
		}
	}
}

// testInlineSource changes the source as soon as Post has returned.
func testInlineSource(t *testing.T, s *suite) {
	need(t, s.caps.MaxInline >= 8, "inline writes of a word")
	a, b := s.pair(t, 1<<16)
	size := min(s.caps.MaxInline, 64)
	src := mem.Of(make([]byte, size)) // not registered
	const ops = 500
	for i := range ops {
		fill(src, uint64(i))
		op := a.op(transport.OpWrite, 1, 0, i*size, 0)
		op.Flags |= transport.FlagInline
		op.SGE[0] = transport.SGE{Mem: src}
		if i != ops-1 {
			op = quiet(op)
		}
		a.post(op)
		fill(src, ^uint64(0))
		if i == ops-1 {
			require.Equal(t, transport.StatusOK, a.wait(op.Cookie).Status)
		}
	}
	a.settle(1)
	for i := range ops {
		requirePattern(t, b.mem.Slice(i*size, size), uint64(i), 0, "inline write %d", i)
	}
}
