package hose

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/firehose"
	"gopgas/internal/mem"
	"gopgas/regmgr"
)

// TestUse: the first use of a bucket is a move, the next ones are hits, and no part crosses the bucket's end.
func TestUse(t *testing.T) {
	p := newPair(t)
	h := p.set[0]
	require.False(t, p.try(100, 8), "nothing is held yet")
	require.False(t, h.Held(p.far, p.addr(100), 8))
	key, direct, carried, err := h.Attach("get", 3, p.far, p.addr(100), 8, nil, true)
	require.NoError(t, err)
	require.True(t, direct)
	require.False(t, carried)
	require.GreaterOrEqual(t, key, uint64(1000))
	require.True(t, h.Held(p.far, p.addr(100), 8))
	require.True(t, p.try(100, 8))
	p.release(3)
	require.True(t, p.try(100, 8), "it stays")
	require.Equal(t, 1, p.nic[0].sent[Ask])

	room, err := h.Cut(p.far, p.addr(100), exposed, exposed)
	require.NoError(t, err)
	require.Positive(t, room)
	require.True(t, p.try(100, room))
	require.False(t, p.try(100, room+1), "a part of another bucket")
	most, err := h.Cut(p.far, p.addr(100), exposed, 7)
	require.NoError(t, err)
	require.Equal(t, 7, most)
	origin, owner := h.Stats()
	require.Positive(t, origin.Hits)
	require.Zero(t, owner.Pinned)
	_, owner = p.set[1].Stats()
	require.Positive(t, owner.Pinned)
	p.end(t)
}

// TestCarried: a small put of a miss travels in the move, and nothing is left to release.
func TestCarried(t *testing.T) {
	p := newPair(t)
	src := []byte("eight by")
	_, direct, carried, err := p.set[0].Attach("put", 1, p.far, p.addr(64), len(src), src, false)
	require.NoError(t, err)
	require.False(t, direct)
	require.True(t, carried)
	require.Equal(t, src, p.mem.Slice(64, len(src)).Data())
	require.True(t, p.try(64, 8), "the bucket came too")
	p.end(t)
}

// TestFetch: a long transfer, and one of many runs, ask for their buckets together and keep none.
func TestFetch(t *testing.T) {
	p := newPair(t)
	h := p.set[0]
	f, err := h.Fetch("put", p.far, p.addr(0), 4<<20, false)
	require.NoError(t, err)
	n, err := f.End("put")
	require.NoError(t, err)
	require.Positive(t, n)
	require.Equal(t, n, f.Bytes())
	require.False(t, f.Pending())
	require.Positive(t, p.far.v.Order(), "a long put begins with large buckets")
	require.GreaterOrEqual(t, h.budget.Share>>p.far.v.Order(), int64(4))
	require.True(t, h.Held(p.far, p.addr(0), 8))

	const lone = 7 << 20
	f, err = h.Fetch("put", p.far, p.addr(lone), 8, false)
	require.NoError(t, err)
	require.False(t, f.Pending(), "whoever uses it will ask")
	_, err = f.End("put")
	require.NoError(t, err)
	require.False(t, h.Held(p.far, p.addr(lone), 8))
	f, err = h.Fetch("put", p.far, p.addr(lone), 8, true)
	require.NoError(t, err)
	_, err = f.End("put")
	require.NoError(t, err)
	require.True(t, h.Held(p.far, p.addr(lone), 8))

	p.nic[0].full = 2 // a move that finds no room is sent later
	next, err := h.FetchRuns("get", 6, 1, func(i int) Span {
		if i == 2 {
			return Span{}
		}
		return Span{Far: p.far, Addr: p.addr(i << 20), Bytes: 8}
	})
	require.NoError(t, err)
	require.Greater(t, next, 1)
	for i := 1; i < next; i++ {
		if i != 2 {
			require.True(t, h.Held(p.far, p.addr(i<<20), 8), "run %d", i)
		}
	}
	p.end(t)
}

// TestFetchBeginsWithWhatIsHeld: a long transfer whose first buckets are held does not wait, and the others are on their way; one of which
// all are held asks for nothing.
func TestFetchBeginsWithWhatIsHeld(t *testing.T) {
	p := newPair(t)
	h := p.set[0]
	unit := int(h.Unit())
	require.NoError(t, h.Fix(h.Unit()))
	first, err := h.Cut(p.far, p.addr(0), exposed, exposed)
	require.NoError(t, err)
	for i, off := range []int{0, first} {
		_, direct, _, err := h.Attach("get", int32(i), p.far, p.addr(off), 8, nil, true)
		require.NoError(t, err)
		require.True(t, direct)
		p.release(int32(i))
	}
	asked := p.nic[0].sent[Ask]
	p.nic[0].full = 1 // the move finds no room yet
	f, err := h.Fetch("put", p.far, p.addr(0), 8*unit, false)
	require.NoError(t, err)
	require.Equal(t, first+unit, f.Bytes())
	require.False(t, f.Pending())
	require.False(t, h.Held(p.far, p.addr(first+unit), 8))
	n, err := f.End("put")
	require.NoError(t, err)
	require.Equal(t, first+unit, n)
	h.Progress()
	require.Equal(t, asked+1, p.nic[0].sent[Ask])
	require.True(t, h.Held(p.far, p.addr(first+unit), 6*unit-first), "all that was left")
	f, err = h.Fetch("put", p.far, p.addr(0), 7*unit, false)
	require.NoError(t, err)
	require.Equal(t, 7*unit, f.Bytes())
	require.Equal(t, asked+1, p.nic[0].sent[Ask])
	f, err = h.Fetch("put", p.far, p.addr(unit), 12*unit, false)
	require.NoError(t, err)
	require.Less(t, f.Bytes(), 8*unit)
	require.Equal(t, asked+2, p.nic[0].sent[Ask])
	require.True(t, h.holder.Held(p.far.v, p.addr(unit)-p.far.start, 12*uint64(unit)), "and none of those that were held had to go")
	p.end(t)
}

// TestUndelivered: where moves do not arrive messages do, and the owner is told that nothing of his is held any more.
func TestUndelivered(t *testing.T) {
	p := newPair(t)
	h := p.set[0]
	_, direct, _, err := h.Attach("get", 0, p.far, p.addr(0), 8, nil, true)
	require.NoError(t, err)
	require.True(t, direct)
	p.release(0)
	p.nic[0].refuse = errLost
	_, direct, carried, err := h.Attach("get", 0, p.far, p.addr(4<<20), 8, nil, true)
	require.NoError(t, err, "it goes by message")
	require.False(t, direct)
	require.False(t, carried)
	require.Zero(t, p.nic[0].sent[Forgotten])
	p.nic[0].refuse = nil
	h.Progress()
	require.Equal(t, 1, p.nic[0].sent[Forgotten], "E4")
	require.False(t, p.try(0, 8))
	p.end(t)
}

// TestUnanswered: who could not deliver an answer has the asker give up what he holds.
func TestUnanswered(t *testing.T) {
	p := newPair(t)
	_, direct, _, err := p.set[0].Attach("get", 0, p.far, p.addr(0), 8, nil, true)
	require.NoError(t, err)
	require.True(t, direct)
	p.release(0)
	p.set[1].Answered(cookieOf(Answer, 0), 0, nil, errLost)
	p.set[1].Progress()
	require.Equal(t, 1, p.nic[1].sent[Forget])
	p.set[0].Progress()
	require.Equal(t, 1, p.nic[0].sent[Forgotten])
	require.False(t, p.try(0, 8))
	p.end(t)
}

// TestGone: the end of the owner ends the wait for it.
func TestGone(t *testing.T) {
	p := newPair(t)
	dead := errors.New("rank 1 is gone")
	p.nic[0].gone = dead
	_, direct, _, err := p.set[0].Attach("get", 0, p.far, p.addr(0), 8, nil, true)
	require.ErrorIs(t, err, dead)
	require.False(t, direct)
	p.set[0].Lost(1)
	require.False(t, p.try(0, 8))
	p.end(t)
}

// TestMalformed: what no Set sends is not taken in.
func TestMalformed(t *testing.T) {
	p := newPair(t)
	for _, c := range []struct {
		k    Kind
		from int
	}{{Ask, -1}, {Ask, 2}, {Answer, 0}, {Ask, 0}, {Forgotten, 2}} {
		_, ok := p.set[1].Handle(c.k, c.from, []byte{1, 2, 3}, nil)
		require.False(t, ok, "%v", c)
	}
	p.end(t)
}

// TestCosts: what a miss costs comes from the model of registrations and the shortest move.
func TestCosts(t *testing.T) {
	p := newPair(t)
	h := p.set[0]
	require.Equal(t, 1, p.nic[0].modal)
	c := costsOf(p.nic[0].model)
	require.Equal(t, firehose.Costs{RoundTrip: 4000, Register: 4000, RegisterByte: 300.0 / 4096, Operation: operation}, c)
	posted := p.nic[0].model
	posted.Post = 180
	require.EqualValues(t, 180, costsOf(posted).Operation, "where it was measured")
	require.Equal(t, c, h.costs)
	one := firehose.Run{First: firehose.MakeBucket(1, 0, 0), Count: 1}
	byRegistration := c.Register + float64(h.Unit())*c.RegisterByte
	h.timedLocked(time.Duration(byRegistration+5000), one)
	require.InDelta(t, 5000, h.costs.RoundTrip, 2)
	h.timedLocked(time.Duration(byRegistration+9000), one)
	require.InDelta(t, 5000, h.costs.RoundTrip, 2, "the shortest")
	h.timedLocked(time.Duration(byRegistration/2), one)
	require.InDelta(t, byRegistration/8, h.costs.RoundTrip, 2, "the owner did not have to register")
	p.end(t)
}

// TestFix: the size of buckets can be fixed to what there is room for.
func TestFix(t *testing.T) {
	p := newPair(t)
	h := p.set[0]
	for _, bytes := range []int64{h.Unit() / 2, h.Unit() + 1, budget} {
		require.ErrorContains(t, h.Fix(bytes), "found room for powers of two")
	}
	require.NoError(t, h.Fix(2*h.Unit()))
	room, err := h.Cut(p.far, p.addr(0), exposed, exposed)
	require.NoError(t, err)
	require.EqualValues(t, 2*h.Unit()-int64(p.mem.Addr())%int64(os.Getpagesize()), room, "buckets begin with the first page")
	require.NoError(t, h.Fix(0))
	p.end(t)
}

// TestSmallerSinceCut: buckets have become smaller since a part was cut by their ends, as another use had them do: one key does not open it.
func TestSmallerSinceCut(t *testing.T) {
	p := newPair(t)
	h := p.set[0]
	require.NoError(t, h.Fix(2*h.Unit()))
	bytes, err := h.Cut(p.far, p.addr(0), exposed, exposed)
	require.NoError(t, err)
	func() {
		h.lock.Lock()
		defer h.lock.Unlock()
		v, err := h.viewLocked(p.far)
		require.NoError(t, err)
		require.NoError(t, h.holder.Fix(v, 0))
	}()
	for range 2 { // a miss, a hit
		_, direct, carried, err := h.Attach("get", 3, p.far, p.addr(0), bytes, nil, true)
		require.NoError(t, err)
		require.False(t, direct)
		require.False(t, carried)
	}
	bytes, err = h.Cut(p.far, p.addr(0), exposed, exposed)
	require.NoError(t, err)
	_, direct, _, err := h.Attach("get", 3, p.far, p.addr(0), bytes, nil, true)
	require.NoError(t, err)
	require.True(t, direct)
	p.release(3)
	p.end(t)
}

// TestNoShare: where the budget leaves no page for the peer everything is refused without an error and without a word, so that messages carry it.
func TestNoShare(t *testing.T) {
	p := newPairOf(t, regmgr.Config{Policy: regmgr.LeavePinned, Bytes: int64(os.Getpagesize())})
	h := p.set[0]
	require.True(t, h.Barred(1))
	require.False(t, p.try(0, 8))
	for _, put := range [][]byte{nil, []byte("eight by")} {
		_, direct, carried, err := h.Attach("put", 1, p.far, p.addr(0), 8, put, false)
		require.NoError(t, err)
		require.False(t, direct)
		require.False(t, carried)
	}
	f, err := h.Fetch("put", p.far, p.addr(0), exposed, true)
	require.NoError(t, err)
	_, err = f.End("put")
	require.NoError(t, err)
	require.Zero(t, p.nic[0].sent)
	p.end(t)
}

// TestFewRegistrations: each bucket is a registration of the NIC, of which half may be buckets; where it has few, buckets are larger.
func TestFewRegistrations(t *testing.T) {
	p := newPair(t)
	for regions, kib := range map[int]int64{0: 32, 1 << 20: 32, 256: 32, 255: 64, 8: 1024, 2: 2048} { // of 4 MiB, 3 for peers; of 2 a share of one bucket
		h, err := New(Config{Size: 2, Bytes: budget, Regions: regions, Payload: 4096, Registered: p.regs[0]})
		require.NoError(t, err)
		require.Equal(t, kib<<10, h.Unit(), "%d registrations", regions)
		require.Positive(t, h.budget.Share)
		if regions > 0 {
			require.LessOrEqual(t, h.budget.Share+h.budget.Victims, int64(regions/2), "%d registrations", regions)
		}
	}
	p.end(t)
}

// TestShortMessages: messages in which no bucket can be named are refused.
func TestShortMessages(t *testing.T) {
	p := newPair(t)
	_, err := New(Config{Size: 2, Bytes: budget, Payload: firehose.LeastPayload - 1, Registered: p.regs[0]})
	require.ErrorIs(t, err, firehose.ErrLimits)
	p.end(t)
}

// TestAllocations: a hit allocates nothing.
func TestAllocations(t *testing.T) {
	p := newPair(t)
	_, direct, _, err := p.set[0].Attach("get", 0, p.far, p.addr(0), 8, nil, true)
	require.NoError(t, err)
	require.True(t, direct)
	p.release(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if !p.try(0, 8) {
			t.Fail()
		}
	}))
	p.end(t)
}

// BenchmarkTake is a hit: a bucket that is held is taken and given back.
func BenchmarkTake(b *testing.B) {
	p := newPair(b)
	f, err := p.set[0].Fetch("put", p.far, p.addr(0), exposed, false)
	require.NoError(b, err)
	n, err := f.End("put")
	require.NoError(b, err)
	src := mem.Of(make([]byte, 8))
	_, _, _, err = p.set[0].Attach("put", 0, p.far, p.addr(0), src.Bytes, nil, false)
	require.NoError(b, err)
	p.release(0)
	require.Positive(b, n)
	b.ReportAllocs()
	for b.Loop() {
		if !p.try(0, 8) {
			b.Fatal("it is not held")
		}
	}
	p.end(b)
}
