package transporttest

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

var randomChecks = []check{{"Random/operations against a model of memory", testRandom}}

// Layout of a rank's memory in the random test: one strip for each initiator, then what the rank itself sends
// from and receives into.
const (
	randomRanks = 3
	strip       = 16 << 10
	arena       = 1 << 20
)

// model is what the strips must hold, and what the reads must have brought.
type model struct {
	strips [randomRanks][]byte // by target: all strips
	reads  []expected
}

// expected is what an operation must have left in its initiator's memory.
type expected struct {
	what string
	got  mem.Range
	want []byte
}

// fetcher is the state of one endpoint in an epoch.
type fetcher struct {
	fetched [][2]int // bytes that reads and atomics not yet fenced are fetching
}

// testRandom makes random operations in epochs. Every rank has a strip of its own at every rank, so that all
// run at once and the outcome is still known; what a later operation overwrites while an earlier one may still
// be fetching it is fenced.
func testRandom(t *testing.T, s *suite) {
	need(t, s.caps.OrderedWrites, "ordered writes")
	r := s.rig(t, randomRanks, randomRanks*strip+arena+64)
	rng := rand.New(rand.NewPCG(s.opt.Seed, 2))
	m := &model{}
	for i, n := range r.nodes {
		m.strips[i] = make([]byte, randomRanks*strip)
		for k := range r.nodes {
			n.ep(k)
		}
	}
	for epoch := range max(1, s.opt.Ops/100) {
		m.reads = m.reads[:0]
		for _, n := range r.nodes {
			s.randomEpoch(n, rng, m)
		}
		for _, n := range r.nodes {
			for peer := range r.nodes {
				n.must(n.op(transport.OpRead, peer, n.mem.Bytes-64, 0, 8)) // all before it is done
			}
		}
		for i, n := range r.nodes {
			require.True(t, string(m.strips[i]) == string(n.mem.Slice(0, randomRanks*strip).Data()),
				"epoch %d: rank %d holds what nobody has written; replay with -transport.seed=%d", epoch, i, s.opt.Seed)
		}
		for _, e := range m.reads {
			require.Equal(t, e.want, e.got.Data(), "epoch %d: %s; replay with -transport.seed=%d", epoch, e.what, s.opt.Seed)
		}
		for _, n := range r.nodes {
			n.got = n.got[:0]
		}
	}
}

// randomEpoch posts some operations of one rank, in random batches.
func (s *suite) randomEpoch(n *node, rng *rand.Rand, m *model) {
	var ends [randomRanks]fetcher
	local := randomRanks * strip // bump allocation in the arena
	take := func(bytes int) int {
		at := (local+7)&^7 + rng.IntN(2)*rng.IntN(8)
		local = at + bytes
		return at
	}
	var batch []transport.Op
	for range 60 {
		peer := rng.IntN(randomRanks)
		op, end := s.randomStep(n, rng, m, &ends[peer], peer, take)
		if end > randomRanks*strip+arena {
			break
		}
		batch = append(batch, op)
		if rng.IntN(4) == 0 {
			n.post(batch...)
			batch = batch[:0]
		}
	}
	n.post(batch...)
}

// randomStep makes one operation and does it in the model. end is where the arena is used up to.
func (s *suite) randomStep(n *node, rng *rand.Rand, m *model, f *fetcher, peer int, take func(int) int) (op transport.Op, end int) {
	sizes := []int{0, 1, 4, 8, 8, 8, 63, 64, s.caps.MaxInline, 500, 4096, 9000}
	bytes := min(sizes[rng.IntN(len(sizes))], s.caps.MaxMessage, strip-8)
	roff := n.rank*strip + rng.IntN((strip-bytes)/8)*8
	if rng.IntN(3) == 0 {
		roff += rng.IntN(7)
	}
	kind := []transport.Kind{transport.OpWrite, transport.OpWrite, transport.OpRead, transport.OpFetchAdd, transport.OpCompareSwap}[rng.IntN(5)]
	if kind >= transport.OpFetchAdd {
		if !s.caps.Atomics64 {
			kind = transport.OpWrite
		} else {
			bytes, roff = 8, roff&^7
		}
	}
	at := take(bytes)
	if kind >= transport.OpFetchAdd {
		at = take(16) &^ 7
	}
	end = at + bytes
	if end > randomRanks*strip+arena {
		return op, end
	}
	op = n.opOn(n.eps[peer], kind, peer, at, roff, bytes)
	there := m.strips[peer][roff : roff+bytes]
	here := n.mem.Slice(at, bytes)
	switch kind {
	case transport.OpWrite:
		for i := range here.Data() {
			here.Data()[i] = byte(rng.Uint32())
		}
		copy(there, here.Data())
		op.Flags |= f.fence(roff, bytes)
		if bytes <= s.caps.MaxInline && rng.IntN(2) == 0 {
			op.Flags |= transport.FlagInline
		}
	case transport.OpRead:
		m.reads = append(m.reads, expected{"read", here, append([]byte{}, there...)})
		f.fetched = append(f.fetched, [2]int{roff, bytes})
	default:
		m.reads = append(m.reads, expected{"atomic", here, append([]byte{}, there...)})
		op.Flags |= f.fence(roff, bytes)
		f.fetched = append(f.fetched, [2]int{roff, bytes})
		applyModel(&op, there, rng)
	}
	s.splitRandomly(&op, rng)
	if rng.IntN(3) != 0 {
		op = quiet(op)
	}
	return op, end
}

// fence returns FlagFence if the bytes may still be being fetched.
func (f *fetcher) fence(off, bytes int) uint8 {
	for _, r := range f.fetched {
		if off < r[0]+r[1] && r[0] < off+bytes {
			f.fetched = f.fetched[:0]
			return transport.FlagFence
		}
	}
	return 0
}

// applyModel chooses an atomic's operands and does it in the model.
func applyModel(op *transport.Op, word []byte, rng *rand.Rand) {
	w := mem.Of(make([]uint64, 1))
	copy(w.Data(), word)
	v := w.Word64(0)
	op.Arg0, op.Arg1 = rng.Uint64(), rng.Uint64()
	if op.Kind == transport.OpFetchAdd {
		v.Add(op.Arg0)
	} else {
		if rng.IntN(2) == 0 {
			op.Arg0 = v.Load()
		}
		v.CompareAndSwap(op.Arg0, op.Arg1)
	}
	copy(word, w.Data())
}

// splitRandomly cuts the local piece into several that follow each other.
func (s *suite) splitRandomly(op *transport.Op, rng *rand.Rand) {
	if op.Kind != transport.OpWrite && op.Kind != transport.OpRead {
		return
	}
	for int(op.NSGE) < s.caps.MaxSGE && rng.IntN(3) == 0 {
		last := op.SGE[op.NSGE-1]
		cut := rng.IntN(last.Mem.Bytes + 1)
		op.SGE[op.NSGE-1].Mem = last.Mem.Slice(0, cut)
		op.SGE[op.NSGE] = transport.SGE{Mem: last.Mem.Slice(cut, last.Mem.Bytes-cut), LKey: last.LKey}
		op.NSGE++
	}
}
