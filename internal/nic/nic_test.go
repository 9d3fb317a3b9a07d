package nic

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/invariants"
	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// TestLifeOfAPiece (N1): its client is told once that it has landed, before its transfer is over, and lets go once of what it was tied
// to; posted, refused or abandoned.
func TestLifeOfAPiece(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *world, id int32, op transport.Op) error
		want error // of the flush
	}{
		{"posted", func(w *world, id int32, op transport.Op) error { return w.n[0].Post("get", id, op) }, nil},
		{"held back", func(w *world, id int32, op transport.Op) error { return w.postLater("get", id, &op) }, nil},
		{"refused", func(w *world, id int32, op transport.Op) error { op.RKey++; return w.n[0].Post("get", id, op) }, ErrRefused},
		{"abandoned", func(w *world, id int32, _ transport.Op) error { w.n[0].Abandon(id); return nil }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
			n, l := w.n[0], w.to[0]
			h, id, err := n.BeginOne("get", 1)
			require.NoError(t, err)
			early := true
			l.landed = func(int32) { early = early && !n.table.Over(h.id, h.gen) }
			n.Tie(id)
			n.Lend(id)
			op := w.write(1, 0)
			w.fill(id, &op, 7)
			require.True(t, n.Pending(1))
			require.NoError(t, c.end(w, id, op))
			if c.name == "abandoned" {
				n.PartDone(h, nil)
			}
			require.ErrorIs(t, h.Wait(t.Context()), c.want)
			require.NoError(t, n.Flush(t.Context(), 1), "it is the handle's to tell")
			require.True(t, early)
			require.Equal(t, 1, l.ends[id])
			require.Equal(t, 1, l.letGo[id])
			require.True(t, n.Idle())
			again, err := n.Acquire("get", 1, false)
			require.NoError(t, err)
			require.Equal(t, id, again, "the piece is free")
			n.Abandon(again)
			require.Equal(t, 1, l.letGo[id], "it was tied to nothing more")
			require.Equal(t, 1, l.ends[id], "nothing more was lent to it")
		})
	}
}

// TestFlushTells (N2): the first error of what has no handle, or of a put that nobody has waited for, once; of others nothing.
func TestFlushTells(t *testing.T) {
	w := newWorld(t, 3, transporttest.FabricConfig{}, nil)
	n := w.n[0]
	fail := func(rank int, op string) Handle {
		var h Handle
		id, err := int32(0), error(nil)
		if op == "" {
			id, err = n.Acquire("x", rank, false)
		} else {
			h, id, err = n.BeginOne(op, rank)
		}
		require.NoError(t, err)
		wr := w.write(rank, 0)
		w.fill(id, &wr, 1)
		wr.RKey++
		require.NoError(t, n.Post("x", id, wr))
		return h
	}
	told := func(rank int, want error) {
		t.Helper()
		err := n.Flush(t.Context(), rank)
		require.ErrorIs(t, err, want)
		if of := (*transport.OpError)(nil); want != nil {
			require.ErrorAs(t, err, &of)
			require.Equal(t, rank, of.Rank)
		}
		require.NoError(t, n.Flush(t.Context(), rank), "it is told once")
	}
	fail(1, "")
	fail(1, "")
	told(2, nil)
	told(1, ErrRefused)
	fail(1, OpPut)
	told(1, ErrRefused)
	fail(1, "")
	fail(1, OpPut)
	fail(1, OpPut)
	told(1, ErrRefused)
	require.True(t, n.Idle(), "one flush tells of all")
	h := fail(1, OpPut)
	require.ErrorIs(t, h.Wait(t.Context()), ErrRefused)
	require.NoError(t, h.Wait(t.Context()))
	told(1, nil)
	h = fail(2, "get")
	told(2, nil)
	require.ErrorIs(t, h.Wait(t.Context()), ErrRefused)
	k := n.Began(1)
	require.False(t, n.Ordered(1))
	require.True(t, n.Pending(1))
	n.Ended(1, k, errors.New("of more than a piece"))
	require.True(t, n.Ordered(1))
	require.ErrorContains(t, n.Flush(t.Context(), 1), "of more than a piece")
	require.True(t, n.Idle())
}

// TestHeldBack (N5): what nobody waits for crosses together, in order, before what is posted behind it, and with any wait.
func TestHeldBack(t *testing.T) {
	w, b := newBrittle(t, 2, transporttest.FabricConfig{})
	n := w.n[0]
	later := func(v uint64) {
		id, err := n.Acquire("put", 1, false)
		require.NoError(t, err)
		op := w.write(1, 0)
		w.fill(id, &op, v)
		require.NoError(t, w.postLater("put", id, &op))
	}
	for k := 1; k <= Batch; k++ {
		later(uint64(k))
		require.Equal(t, k, n.HeldBack())
	}
	require.Empty(t, b.posts)
	require.Zero(t, w.mem[1].Word64(0).Load())
	seen, err := w.read(1, 0)
	require.NoError(t, err)
	require.EqualValues(t, Batch, seen)
	posts := slices.Clone(b.posts)
	for invariants.Enabled && len(posts) > 2 && posts[1] < Batch { // it pretends at times that the NIC has room for one alone
		posts[1] += posts[0]
		posts = posts[1:]
	}
	require.Equal(t, []int{Batch, 1}, posts)
	for k := range 3 * Batch { // it waits for room
		later(uint64(k))
	}
	require.NoError(t, n.Flush(t.Context(), 1))
	require.EqualValues(t, 3*Batch-1, w.mem[1].Word64(0).Load())
	require.Zero(t, n.HeldBack())
	require.True(t, n.Idle())
}

// TestCarriedWithHeldBack: what is waited for crosses together with what was held back, behind it.
func TestCarriedWithHeldBack(t *testing.T) {
	w, b := newBrittle(t, 2, transporttest.FabricConfig{})
	n, together := w.n[0], 0
	for v := uint64(1); v <= 100; v++ {
		id, err := n.Acquire("put", 1, false)
		require.NoError(t, err)
		op := w.write(1, 0)
		w.fill(id, &op, v)
		require.NoError(t, w.postLater("put", id, &op))
		b.posts = nil
		get := n.TryLay(new(Tally), 1, transport.OpRead, 0, 8, w.mem[1].Addr(), w.rkey[1])
		require.NotNil(t, get)
		var seen [1]uint64
		require.NoError(t, n.Carry("get", get, mem.Of(seen[:])))
		require.Equal(t, v, seen[0])
		require.Zero(t, n.HeldBack())
		if slices.Equal(b.posts, []int{2}) {
			together++
		}
	}
	if invariants.Enabled { // it pretends at times that the NIC has room for one alone
		require.Greater(t, together, 50)
	} else {
		require.Equal(t, 100, together)
	}
	require.True(t, n.Idle())
}

// TestRoom: who must not wait is told that there is no room, who may waits until somebody has given a piece back, and what is kept is
// its waiter's until then.
func TestRoom(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
	n := w.n[0]
	var all []Kept
	for range Pieces {
		k, err := n.Keep("get", 1, false, false)
		require.NoError(t, err)
		all = append(all, k)
	}
	_, err := n.Keep("get", 1, false, false)
	require.ErrorIs(t, err, ErrNoRoom)
	_, ok := n.TryAcquire(1, false)
	require.False(t, ok)
	n.Lock()
	_, _, ok = n.TryBeginOneLocked("get", 1, false)
	n.Unlock()
	require.False(t, ok)
	for k := range 2 {
		w.mem[1].Word64(8 * k).Store(uint64(40 + k))
		op := transport.Op{Kind: transport.OpRead, NSGE: 1, RAddr: w.mem[1].Addr() + uint64(8*k), RKey: w.rkey[1]}
		buf, key := n.Buffer(all[k].ID, 8)
		op.SGE[0] = transport.SGE{Mem: buf, LKey: key}
		require.NoError(t, n.Post("get", all[k].ID, op))
	}
	for k := range 2 {
		v, err := n.Take(all[k])
		require.NoError(t, err)
		require.EqualValues(t, 40+k, v)
		_, err = n.Acquire("get", 1, false)
		require.NoError(t, err)
	}
}

// TestFetch: what it brings lies in its place when it is over, and the only one in flight is told so.
func TestFetch(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
	n := w.n[0]
	w.mem[1].Word64(0).Store(100)
	old := mem.Of(make([]uint64, 2))
	var hs [2]Handle
	for k := range hs {
		h, id, only, err := n.BeginFetch("fetch-add", 1, old.Slice(8*k, 8))
		require.NoError(t, err)
		require.Equal(t, k == 0, only)
		op := transport.Op{Kind: transport.OpFetchAdd, NSGE: 1, RAddr: w.mem[1].Addr(), RKey: w.rkey[1], Arg0: 5}
		buf, key := n.Buffer(id, 8)
		op.SGE[0] = transport.SGE{Mem: buf, LKey: key}
		require.NoError(t, n.Post("fetch-add", id, op))
		hs[k] = h
	}
	for k, h := range hs {
		require.NoError(t, h.Wait(t.Context()))
		require.EqualValues(t, 100+5*k, old.Word64(8*k).Load())
	}
	require.EqualValues(t, 110, w.mem[1].Word64(0).Load())
	require.True(t, n.Idle())
}

// TestTryPost: it does not wait for a connection, but has one made; how it ends is told by its own name.
func TestTryPost(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
	n, l := w.n[0], w.to[0]
	src := mem.Of([]uint64{9})
	key, err := n.Domain.Register(src, 0)
	require.NoError(t, err)
	op := w.write(1, 0)
	op.Flags, op.Cookie, op.EP = transport.FlagSignaled, 1<<40, transport.EP{Index: 1}
	op.SGE[0] = transport.SGE{Mem: src, LKey: key.LKey}
	posted, err := n.TryPost(&op)
	require.NoError(t, err)
	require.False(t, posted)
	w.until(t, func() bool { posted, err = n.TryPost(&op); return posted || err != nil })
	require.NoError(t, err)
	bad := op
	bad.RKey++
	bad.Cookie++
	w.until(t, func() bool { posted, err = n.TryPost(&bad); return posted || err != nil })
	require.NoError(t, err)
	w.until(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.reported) == 2
	})
	require.EqualValues(t, 9, w.mem[1].Word64(0).Load())
	require.NoError(t, l.reported[op.Cookie])
	require.ErrorIs(t, l.reported[bad.Cookie], ErrRefused)
	require.NoError(t, n.Flush(t.Context(), 1), "its owner tells")
	require.NoError(t, n.Domain.Deregister(key))
}

// TestChain posts to two ranks in turn, reads back, and takes one back.
func TestChain(t *testing.T) {
	w, b := newBrittle(t, 3, transporttest.FabricConfig{})
	n := w.n[0]
	var c Chain
	c.Use(n, "scatter")
	for r := range 3 {
		require.NoError(t, n.Connect("scatter", r)) // what waits for one goes by itself
	}
	const many = 3*Batch + 5
	for k := range many {
		buf, err := c.Add(1+k%2, w.write(1+k%2, 8*k), 8, mem.Range{}, Nowhere)
		require.NoError(t, err)
		buf.Word64(0).Store(uint64(k + 1))
	}
	_, err := c.Add(1, w.write(1, 0), 8, mem.Range{}, Nowhere)
	require.NoError(t, err)
	op, id := c.Last()
	require.Equal(t, w.mem[1].Addr(), op.RAddr)
	n.Lend(id)
	c.Drop()
	require.Equal(t, 1, w.to[0].ends[id])
	require.NoError(t, c.Flush(mem.Range{}))
	for r := range 3 {
		require.NoError(t, n.Flush(context.Background(), r))
	}
	require.Equal(t, []int{Batch, Batch, Batch, 5}, b.posts)
	back := mem.Of(make([]uint64, many))
	for k := range many {
		rd := w.write(1+k%2, 8*k)
		rd.Kind, rd.Flags = transport.OpRead, 0
		_, err := c.Add(1+k%2, rd, 8, back, 8*(many-1-k))
		require.NoError(t, err)
	}
	require.NoError(t, c.Flush(back))
	for k := range many {
		require.EqualValues(t, k+1, back.Word64(8*(many-1-k)).Load())
	}
	rd := w.write(1, 0)
	rd.Kind, rd.Flags, rd.RKey = transport.OpRead, 0, rd.RKey+1
	_, err = c.Add(1, rd, 8, back, 0)
	require.NoError(t, err)
	require.ErrorIs(t, c.Flush(back), ErrRefused)
	require.True(t, n.Idle())
}

// TestNothingAllocates (N7).
func TestNothingAllocates(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
	n := w.n[0]
	w.put(t, 1, 0, 1)
	require.NoError(t, n.Flush(t.Context(), 1))
	require.Zero(t, testing.AllocsPerRun(50, func() {
		id, err := n.Acquire("put", 1, false)
		op := w.write(1, 0)
		w.fill(id, &op, 3)
		if err != nil || n.Post("put", id, op) != nil || n.Flush(context.Background(), 1) != nil {
			panic("put")
		}
		if v, err := w.read(1, 0); err != nil || v != 3 {
			panic("get")
		}
	}))
}

// TestInlineIsAMessage: what goes inline is no longer than a message, also where the device would take more inline.
func TestInlineIsAMessage(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{MaxMessage: 64}, nil)
	require.Greater(t, w.n[0].Caps.MaxInline, 64)
	require.Equal(t, 64, w.n[0].Inline)
}
