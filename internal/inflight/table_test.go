package inflight

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/bounce"
	"gopgas/internal/mem"
	"gopgas/transport"
)

const (
	testPieces = 16
	testSlots  = 4
	testSlot   = 512
)

func newTable() *Table {
	t := new(Table)
	t.Init(Config{
		Pieces: testPieces, Pool: bounce.New(mem.Of(make([]byte, testSlots*testSlot)), testSlot), PoolKey: 7,
		Scratch: mem.Of(make([]byte, testPieces*ScratchBytes)), ScratchKey: 8,
	})
	return t
}

// TestPieces: there are as many as were asked for, slots as many as the pool has, and no two buffers overlap.
func TestPieces(t *testing.T) {
	tb := newTable()
	for round := range 3 {
		var ids []int32
		for i := range testPieces {
			id, ok := tb.TryAcquire(i, i < testSlots)
			require.True(t, ok)
			require.Equal(t, i, tb.Piece(id).Rank)
			require.False(t, tb.Fetched(id))
			if i == testSlots-1 {
				_, ok = tb.TryAcquire(0, true)
				require.False(t, ok, "no slot is left")
			}
			ids = append(ids, id)
		}
		_, ok := tb.TryAcquire(0, false)
		require.False(t, ok)
		for i, id := range ids {
			want, key := ScratchBytes, uint64(8)
			if i < testSlots {
				want, key = testSlot, 7
			}
			require.Equal(t, want, tb.Capacity(id))
			buf, lkey := tb.Buffer(id, want)
			require.Equal(t, key, lkey)
			for k := range buf.Data() {
				buf.Data()[k] = byte(16*round + i)
			}
			tb.Op(id)[0].Cookie = uint64(100*round + i)
		}
		for i, id := range ids {
			buf, _ := tb.Buffer(id, tb.Capacity(id))
			for _, b := range buf.Data() {
				require.Equal(t, byte(16*round+i), b, "somebody else has written here")
			}
			require.Len(t, tb.Op(id), 1)
			require.EqualValues(t, 100*round+i, tb.Op(id)[0].Cookie)
			tb.Free(id)
		}
	}
}

// TestGivenBack: what the poller gives back without the lock, while others take and free pieces under it, is somebody's once (F1): each of them marks what he
// has. It is what is taken next.
func TestGivenBack(t *testing.T) {
	tb := newTable()
	id, ok := tb.TryTake(0)
	require.True(t, ok)
	tb.GiveBack(tb.Piece(id), id)
	again, ok := tb.TryTake(1)
	require.True(t, ok)
	require.Equal(t, id, again)
	tb.Free(again)

	const rounds = 20000
	var mu sync.Mutex
	var owner [testPieces]int
	posted := make(chan int32, testPieces)
	var takers, poller sync.WaitGroup
	poller.Go(func() {
		for id := range posted {
			owner[id] = 0
			tb.GiveBack(tb.Piece(id), id)
		}
	})
	for who := 1; who <= 3; who++ {
		takers.Go(func() {
			for i := 0; i < rounds; {
				mu.Lock()
				id, ok := tb.TryTake(who)
				mu.Unlock()
				if !ok {
					runtime.Gosched()
					continue
				}
				i++
				if owner[id] != 0 || !tb.Piece(id).Bare() {
					t.Errorf("piece %d is %d's, and now %d's", id, owner[id], who)
				}
				owner[id] = who
				if i%3 != 0 {
					posted <- id
					continue
				}
				owner[id] = 0
				mu.Lock()
				tb.Free(id)
				mu.Unlock()
			}
		})
	}
	takers.Wait()
	close(posted)
	poller.Wait()
	seen := make(map[int32]bool)
	for range testPieces {
		id, ok := tb.TryTake(0)
		require.True(t, ok)
		seen[id] = true
	}
	require.Len(t, seen, testPieces, "none is lost")
	_, ok = tb.TryTake(0)
	require.False(t, ok)
}

// TestEnds: what the end of a piece leaves to whom.
func TestEnds(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		own   bool // it has a transfer
		told  bool
		piped bool
		keep  bool
		err   error
		tell  bool
		loose bool
	}{
		{name: "well"},
		{name: "nobody's error", err: broken, loose: true},
		{name: "a pipe's", piped: true},
		{name: "a pipe's error", piped: true, err: broken},
		{name: "a handle's", own: true},
		{name: "a get's error", own: true, err: broken},
		{name: "a put's error", own: true, told: true, err: broken, tell: true},
		{name: "kept", own: true, keep: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := newTable()
			id, _ := tb.TryAcquire(3, false)
			p := tb.Piece(id)
			for m, has := range map[Marks]bool{Kept: c.keep, Piped: c.piped} {
				if has {
					p.Mark(m)
				}
			}
			var h int32
			var gen uint32
			if c.own {
				h, gen, _ = tb.TryBegin("put", 3, c.told)
				tb.Sole(h, id)
				require.False(t, tb.Over(h, gen))
			}
			rank, tell, loose := tb.Settle(id, c.err)
			require.Equal(t, 3, rank)
			require.Equal(t, c.tell, tell)
			require.Equal(t, c.loose, loose)
			require.Equal(t, c.own && c.err != nil, tb.Failed())
			next, _ := tb.TryTake(3)
			require.Equal(t, c.keep, next != id, "what is kept is not free")
			if !c.own {
				return
			}
			require.True(t, tb.Over(h, gen))
			err := tb.Failure(h, gen)
			require.ErrorIs(t, err, c.err)
			if of := (*transport.OpError)(nil); c.err != nil {
				require.ErrorAs(t, err, &of)
				require.Equal(t, 3, of.Rank)
				require.Equal(t, "put", of.Op)
			}
			require.NoError(t, tb.Failure(h, gen), "it is told once")
			require.NoError(t, tb.Untold(3))
			require.False(t, tb.Failed())
		})
	}
}

// TestUntold: a flush tells of the failures of puts to its rank that no handle has told, and of no others.
func TestUntold(t *testing.T) {
	tb := newTable()
	fail := func(rank int, told bool) (int32, uint32) {
		h, gen, ok := tb.TryBegin("put", rank, told)
		require.True(t, ok)
		tb.PartDone(h, fmt.Errorf("to %d", rank))
		return h, gen
	}
	fail(1, true)
	fail(1, true)
	fail(2, true)
	get, gen := fail(1, false)
	require.ErrorContains(t, tb.Untold(1), "to 1")
	require.NoError(t, tb.Untold(1), "one stands for all")
	require.True(t, tb.Failed())
	require.Error(t, tb.Untold(2))
	require.Error(t, tb.Failure(get, gen))
	require.False(t, tb.Failed())
}

// TestDropped: of failures whose handles were dropped, and that no flush tells, some are kept. Who waits for one that was forgotten, or may have been, is not told that all
// went well; whoever waits for another one is.
func TestDropped(t *testing.T) {
	tb := newTable()
	begin := func(told bool) (int32, uint32) {
		h, gen, ok := tb.TryBegin("get", 1, told)
		require.True(t, ok)
		return h, gen
	}
	first, firstGen := begin(false)
	other, otherGen := begin(false)
	tb.PartDone(first, errors.New("first"))
	tb.PartDone(other, nil)
	for range 3 * MostUntold {
		h, gen := begin(false)
		require.Equal(t, other, h, "it was free last")
		tb.PartDone(h, nil)
		require.NoError(t, tb.Failure(h, gen))
		h, _ = begin(false)
		tb.PartDone(h, errors.New("dropped"))
		h, gen = begin(false)
		tb.PartDone(h, errors.New("waited for"))
		require.ErrorContains(t, tb.Failure(h, gen), "waited for")
		require.NoError(t, tb.Failure(h, gen), "it is told once")
		require.LessOrEqual(t, len(tb.failed), MostUntold)
		require.LessOrEqual(t, len(tb.untold), MostUntold)
	}
	require.ErrorIs(t, tb.Failure(first, firstGen), errForgotten)
	require.ErrorIs(t, tb.Failure(other, otherGen), errForgotten, "it may have been one of them")
	begin(false)
	newer, newerGen := begin(false)
	require.Equal(t, first, newer)
	tb.PartDone(newer, nil)
	require.NoError(t, tb.Failure(newer, newerGen))
	require.True(t, tb.Failed(), "who waits for one of them asks")
	put, putGen := begin(true)
	tb.PartDone(put, errors.New("a put"))
	require.Error(t, tb.Untold(1))
	require.NoError(t, tb.Failure(put, putGen))
	require.True(t, tb.Failed())
}

// TestStaleHandles: a number that is used again says nothing to who had it before, but for his own failure.
func TestStaleHandles(t *testing.T) {
	tb := newTable()
	h, gen, _ := tb.TryBegin("get", 1, false)
	op, rank, ok := tb.What(h, gen)
	require.True(t, ok)
	require.Equal(t, "get", op)
	require.Equal(t, 1, rank)
	tb.PartDone(h, errors.New("first"))
	again, newer, _ := tb.TryBegin("put", 2, true)
	require.Equal(t, h, again)
	require.True(t, tb.Over(h, gen))
	require.False(t, tb.Over(h, newer))
	_, _, ok = tb.What(h, gen)
	require.False(t, ok)
	require.NoError(t, tb.Failure(h, newer))
	require.ErrorContains(t, tb.Failure(h, gen), "first")
}

// TestFetching: of non-blocking atomics in flight the first is told that it is alone.
func TestFetching(t *testing.T) {
	tb := newTable()
	var word [8]byte
	a, _ := tb.TryAcquire(0, false)
	b, _ := tb.TryAcquire(0, false)
	require.True(t, tb.Fetches(a, mem.Of(word[:])))
	require.False(t, tb.Fetches(b, mem.Of(word[:])))
	require.True(t, tb.Fetched(a))
	require.Equal(t, 8, tb.Piece(a).Dst.Bytes)
	tb.Settle(a, nil)
	tb.Free(b) // it was never posted
	c, _ := tb.TryAcquire(0, false)
	require.True(t, tb.Fetches(c, mem.Of(word[:])))
}

// TestTransfersAgainstModel opens transfers, adds pieces and ends them in any order, with and without errors, beside a model.
func TestTransfersAgainstModel(t *testing.T) {
	type model struct {
		gen   uint32
		open  bool // the part that keeps it so
		left  map[int32]bool
		first error
		told  bool
	}
	rng := rand.New(rand.NewPCG(5, 11))
	tb := newTable()
	live := make(map[int32]*model)
	acquired, errs := 0, 0
	one := func() (int32, *model) {
		for id, m := range live { // some order
			return id, m
		}
		return 0, nil
	}
	over := func(id int32, m *model) {
		if m.open || len(m.left) > 0 {
			require.False(t, tb.Over(id, m.gen))
			return
		}
		require.True(t, tb.Over(id, m.gen))
		require.ErrorIs(t, tb.Failure(id, m.gen), m.first)
		delete(live, id)
	}
	fails := func(m *model) (err error) {
		if rng.IntN(4) > 0 {
			return nil
		}
		errs++
		err = fmt.Errorf("error %d", errs)
		if m.first == nil {
			m.first = err
		}
		return err
	}
	for range 20_000 {
		id, m := one()
		switch k := rng.IntN(4); {
		case k == 0 || m == nil:
			told := rng.IntN(2) == 0
			vacant := tb.Vacant()
			id, gen, ok := tb.TryBegin("put", 1, told)
			require.Equal(t, len(live) < testPieces, ok)
			require.Equal(t, vacant, ok)
			if ok {
				require.NotContains(t, live, id)
				live[id] = &model{gen: gen, open: true, left: make(map[int32]bool), told: told}
			}
		case k == 1 && m.open:
			piece, ok := tb.TryAcquire(1, false)
			require.Equal(t, acquired < testPieces, ok)
			if ok {
				acquired++
				tb.Join(id, piece)
				m.left[piece] = true
			}
		case k == 2 && m.open:
			m.open = false
			_, tell := tb.PartDone(id, fails(m))
			require.Equal(t, len(m.left) == 0 && m.told && m.first != nil, tell)
			over(id, m)
		default:
			for piece := range m.left {
				delete(m.left, piece)
				acquired--
				_, tell, loose := tb.Settle(piece, fails(m))
				require.False(t, loose)
				require.Equal(t, !m.open && len(m.left) == 0 && m.told && m.first != nil, tell)
				over(id, m)
				break
			}
		}
	}
	require.False(t, tb.Failed())
}

// TestNothingAllocates: what goes well takes no memory.
func TestNothingAllocates(t *testing.T) {
	tb, good := newTable(), true
	require.Zero(t, testing.AllocsPerRun(100, func() {
		id, _ := tb.TryAcquire(1, true)
		h, gen, _ := tb.TryBegin("get", 1, false)
		tb.Sole(h, id)
		buf, _ := tb.Buffer(id, 8)
		buf.Word64(0).Store(1)
		tb.Settle(id, nil)
		good = good && tb.Over(h, gen) && !tb.Failed()
	}))
	require.True(t, good)
}

// TestFailureIsThereWhenOver: who asks without the lock sees that something has failed as soon as he sees that it is over.
func TestFailureIsThereWhenOver(t *testing.T) {
	tb := newTable()
	var at atomic.Uint64 // the transfer under way: number and generation, plus one
	seen := make(chan bool)
	go func() {
		defer close(seen)
		for range 200 {
			var now uint64
			for now = at.Load(); now == 0; now = at.Load() {
				runtime.Gosched()
			}
			id, gen := int32((now-1)>>32), uint32(now-1)
			for !tb.Over(id, gen) {
				runtime.Gosched()
			}
			if !tb.Failed() {
				return
			}
			at.Store(0)
			seen <- true
		}
	}()
	for range 200 {
		id, gen, _ := tb.TryBegin("put", 1, true)
		at.Store(uint64(id)<<32 | uint64(gen) + 1)
		tb.PartDone(id, errors.New("broken"))
		require.True(t, <-seen)
		require.Error(t, tb.Failure(id, gen))
	}
	<-seen
}

// TestAwaited: a piece that its poster waits for says itself that it is over and how, is his until he frees it, and nothing of that is left
// for the next.
func TestAwaited(t *testing.T) {
	failed := errors.New("refused")
	for _, err := range []error{nil, failed} {
		tb := newTable()
		id, ok := tb.TryAcquire(3, false)
		require.True(t, ok)
		p := tb.Piece(id)
		p.Mark(Awaited)
		require.False(t, p.Over())
		rank, tell, loose := tb.Settle(id, err)
		require.Equal(t, 3, rank)
		require.False(t, tell, "a flush has nothing to tell")
		require.False(t, loose, "somebody waits for it")
		require.True(t, p.Over())
		require.Equal(t, err, p.Err())
		for range testPieces - 1 {
			other, ok := tb.TryAcquire(3, false)
			require.True(t, ok)
			require.NotEqual(t, id, other)
		}
		_, ok = tb.TryAcquire(3, false)
		require.False(t, ok, "it is still its waiter's")
		tb.Free(id)
		again, ok := tb.TryAcquire(4, false)
		require.True(t, ok)
		require.Equal(t, id, again)
		require.False(t, p.Over())
		require.False(t, p.Has(Awaited))
		require.NoError(t, p.Err())
		_, _, loose = tb.Settle(id, failed)
		require.True(t, loose, "now it is nobody's")
	}
}

// TestAside: beside the pieces that there are a few more can be taken, each is somebody's once (F1), and comes back to the others that are kept aside.
func TestAside(t *testing.T) {
	tb := newTable()
	for range testPieces {
		_, ok := tb.TryTake(0)
		require.True(t, ok)
	}
	for round := range 3 {
		seen := map[int32]bool{}
		for i := range asides {
			id, ok := tb.TakeAside(i)
			require.True(t, ok)
			require.False(t, seen[id] || id < testPieces)
			require.Equal(t, i, tb.Piece(id).Rank)
			seen[id] = true
			tb.Piece(id).Mark(Piped)
			tb.Number(tb.Piece(id), id, uint64(i+1))
		}
		_, ok := tb.TakeAside(0)
		require.False(t, ok)
		require.EqualValues(t, 3, tb.Oldest(2, 100))
		for id := range seen {
			tb.Unnumber(id)
			if round == 0 {
				tb.Free(id) // as where it was not posted
				continue
			}
			_, tell, loose := tb.Settle(id, errors.New("gone"))
			require.False(t, tell || loose)
		}
		_, ok = tb.TryTake(0)
		require.False(t, ok, "they are nobody else's")
	}
}
