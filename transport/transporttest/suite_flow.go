package transporttest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/softnic"
	"gopgas/transport"
)

var flowChecks = []check{
	{"T1/batches over mixed endpoints", testMixedBatches},
	{"T1/many posters, one poller", testManyPosters},
	{"T4/post without polling", testOverfill},
	{"T4/unsignalled operations alone", testSilent},
	{"Post/nothing", testPostNothing},
	{"Poll/few at a time", testPollFew},
}

// tally counts completions by cookie.
type tally struct {
	want map[uint64]transport.Op
	seen map[uint64]int
}

func newTally() *tally {
	return &tally{want: map[uint64]transport.Op{}, seen: map[uint64]int{}}
}

func (y *tally) add(ops ...transport.Op) {
	for _, op := range ops {
		if op.Flags&transport.FlagSignaled != 0 {
			y.want[op.Cookie] = op
		}
	}
}

// see checks one completion of an operation that should have succeeded.
func (y *tally) see(c transport.Completion) error {
	op, ok := y.want[c.Cookie]
	y.seen[c.Cookie]++
	switch {
	case !ok:
		return fmt.Errorf("completion of what was not signalled: %+v", c)
	case y.seen[c.Cookie] > 1:
		return fmt.Errorf("a second completion: %+v", c)
	case c.Status != transport.StatusOK || c.Kind != op.Kind || c.EP != op.EP:
		return fmt.Errorf("%+v completed as %+v", op, c)
	}
	return nil
}

// collect polls n until all wanted completions have come, and then for a while longer.
func (y *tally) collect(n *node) {
	n.t.Helper()
	for len(y.seen) < len(y.want) {
		c, err := n.await(n.s.opt.Timeout, func(*transport.Completion) bool { return true })
		require.NoError(n.t, err, "%d of %d completions came", len(y.seen), len(y.want))
		require.NoError(n.t, y.see(c))
	}
	n.none()
}

// randomOp is a short write, read or fetch-add to a random peer, signalled or not.
func (n *node) randomOp(rng *rand.Rand, peers int) transport.Op {
	kinds := []transport.Kind{transport.OpWrite, transport.OpWrite, transport.OpRead, transport.OpFetchAdd}
	if !n.s.caps.Atomics64 {
		kinds = kinds[:3]
	}
	kind, peer := kinds[rng.IntN(len(kinds))], rng.IntN(peers)
	n.cookie++
	op := n.opOn(n.eps[peer], kind, peer, 8*rng.IntN(64), 1024+8*rng.IntN(64), []int{0, 8, 8, 64, 300}[rng.IntN(5)])
	results := 2048 + 512*peer // a place for each endpoint: two may bring results at once
	switch {
	case kind == transport.OpFetchAdd:
		op.SGE[0].Mem = n.mem.Slice(results, 8)
	case kind == transport.OpRead:
		op.SGE[0].Mem = n.mem.Slice(results+8, op.SGE[0].Mem.Bytes)
	case softnic.Total(op.SGE[:1]) <= n.s.caps.MaxInline && rng.IntN(2) == 0:
		op.Flags |= transport.FlagInline
	}
	if rng.IntN(3) == 0 {
		op = quiet(op)
	}
	return op
}

func testMixedBatches(t *testing.T, s *suite) {
	const ranks = 4
	r := s.rig(t, ranks, 4096)
	a, y := r.nodes[0], newTally()
	for i := range ranks {
		a.ep(i)
	}
	rng := rand.New(rand.NewPCG(s.opt.Seed, 1))
	for left := s.opt.Ops; left > 0; {
		batch := make([]transport.Op, min(left, 1+rng.IntN(40)))
		for i := range batch {
			batch[i] = a.randomOp(rng, ranks)
		}
		y.add(batch...)
		a.post(batch...)
		left -= len(batch)
	}
	y.collect(a)
}

// testManyPosters has goroutines of one rank post at the same time to all ranks, while one polls.
func testManyPosters(t *testing.T, s *suite) {
	const ranks, posters = 3, 8
	r := s.rig(t, ranks, 4096)
	a := r.nodes[0]
	for i := range ranks {
		a.ep(i)
	}
	var signalled [posters]map[uint64]transport.Op
	var posting atomic.Int32
	posting.Store(posters)
	y := newTally()
	var copies [posters]node // with cookies of their own; they never poll
	for i := range copies {
		copies[i] = *a
		copies[i].cookie = uint64(i+1) << 48
	}
	together(t, posters+1, func(i int) error {
		if i == posters { // the poller
			for deadline := time.Now().Add(s.opt.Timeout); posting.Load() > 0 || len(a.got) > 0; {
				k, err := a.drain()
				if err != nil {
					return err
				}
				if k > 0 {
					deadline = time.Now().Add(s.opt.Timeout)
				} else if time.Now().After(deadline) {
					return errNoCompletion
				}
				for _, c := range a.got {
					y.seen[c.Cookie]++
				}
				a.got = a.got[:0]
				if k == 0 {
					runtime.Gosched()
				}
			}
			return nil
		}
		defer posting.Add(-1)
		me := &copies[i]
		signalled[i] = map[uint64]transport.Op{}
		rng := rand.New(rand.NewPCG(s.opt.Seed, uint64(i)))
		for range s.opt.Ops / posters {
			op := me.randomOp(rng, ranks)
			if op.Kind != transport.OpWrite { // their results would collide
				op.Kind, op.SGE[0].Mem = transport.OpWrite, a.mem.Slice(0, 8)
			}
			if op.Flags&transport.FlagSignaled != 0 {
				signalled[i][op.Cookie] = op
			}
			for n := 0; n == 0; {
				var err error
				if n, err = a.d.Post([]transport.Op{op}); err != nil {
					return err
				}
				if n == 0 {
					runtime.Gosched()
				}
			}
		}
		return nil
	})
	for _, m := range signalled {
		for _, op := range m {
			y.add(op)
		}
	}
	for cookie, times := range y.seen {
		require.Equal(t, 1, times, "completions of %#x", cookie)
		require.Contains(t, y.want, cookie)
	}
	y.collect(a)
}

// testOverfill posts without polling until the NIC takes no more: it must stop at MaxPost, without an error,
// and report every single one afterwards.
func testOverfill(t *testing.T, s *suite) {
	const ranks = 3
	r := s.rig(t, ranks, 4096)
	a := r.nodes[0]
	for round := range 3 {
		y := newTally()
		for peer := range ranks {
			taken, refused := 0, 0
			for taken <= s.caps.MaxPost && refused < 50 {
				batch := make([]transport.Op, 7)
				for i := range batch {
					batch[i] = a.op(transport.OpWrite, peer, 0, 1024, 8*(i%4))
				}
				n, err := a.d.Post(batch)
				require.NoError(t, err)
				y.add(batch[:n]...)
				taken += n
				if n == 0 {
					refused++
				} else {
					refused = 0
				}
			}
			require.LessOrEqual(t, taken, s.caps.MaxPost, "round %d: more in flight on the endpoint of %d than MaxPost", round, peer)
			require.Positive(t, taken)
		}
		if round == 2 {
			time.Sleep(50 * time.Millisecond) // all are done before the first Poll
		}
		y.collect(a)
	}
}

// testSilent posts many times MaxPost operations that report nothing: polling alone makes room.
func testSilent(t *testing.T, s *suite) {
	a, b := s.pair(t, 1<<16)
	count := min(4*s.caps.MaxPost+3, 8192)
	for k := range count {
		a.mem.Word64(8 * k % 32768).Store(uint64(k))
		op := quiet(a.op(transport.OpWrite, 1, 8*k%32768, 8*k%32768, 8))
		if k%2 == 0 && s.caps.MaxInline >= 8 {
			op.Flags |= transport.FlagInline
		}
		a.post(op)
	}
	require.Empty(t, a.got, "an unsignalled success was reported")
	a.must(a.op(transport.OpWrite, 1, 40000, 40000, 8))
	a.settle(1)
	for k := max(0, count-4096); k < count; k++ {
		require.EqualValues(t, k, b.mem.Word64(8*k%32768).Load())
	}
	a.none()
}

func testPostNothing(t *testing.T, s *suite) {
	a := s.rig(t, 1, 64).nodes[0]
	n, err := a.d.Post(nil)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = a.d.Poll(nil)
	require.NoError(t, err)
	require.Zero(t, n)
	a.none()
}

// testPollFew takes completions one by one and with no room at all.
func testPollFew(t *testing.T, s *suite) {
	a, _ := s.pair(t, 4096)
	y := newTally()
	for range min(10, s.caps.MaxPost) {
		op := a.op(transport.OpWrite, 1, 0, 0, 8)
		y.add(op)
		a.post(op)
	}
	deadline := time.Now().Add(s.opt.Timeout)
	for len(y.seen)+len(a.got) < len(y.want) {
		require.False(t, time.Now().After(deadline), errNoCompletion)
		n, err := a.d.Poll(nil)
		require.NoError(t, err)
		require.Zero(t, n)
		var cq [1]transport.Completion
		n, err = a.d.Poll(cq[:])
		require.NoError(t, err)
		if n == 1 {
			require.NoError(t, y.see(cq[0]))
		}
	}
	y.collect(a)
}
