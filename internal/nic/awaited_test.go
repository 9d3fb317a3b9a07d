package nic

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/am"
	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// await reads a word of rank's memory by an awaited piece; spoil is added to the key.
func (w *world) await(rank, at int, spoil uint64) (uint64, error) {
	n := w.n[0]
	id, err := n.Acquire("get", rank, false)
	if err != nil {
		return 0, err
	}
	_, buf := n.Lay(id, transport.OpRead, 0, 8, w.mem[rank].Addr()+uint64(at), w.rkey[rank]+spoil)
	n.Awaited(id)
	if err := n.PostLaid("get", id); err != nil {
		return 0, err
	}
	err = n.Await("get", id)
	v := buf.Word64(0).Load()
	n.Give(id)
	return v, err
}

// TestAwaited: what is waited for at once brings its result, or its error to who waits and to nobody else, and its piece is free afterwards.
func TestAwaited(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
	n := w.n[0]
	w.mem[1].Word64(8).Store(41)
	for range 2 * Pieces {
		v, err := w.await(1, 8, 0)
		require.NoError(t, err)
		require.EqualValues(t, 41, v)
	}
	_, err := w.await(1, 8, 1)
	require.ErrorIs(t, err, ErrRefused)
	var of *transport.OpError
	require.ErrorAs(t, err, &of)
	require.Equal(t, "get", of.Op)
	require.Equal(t, 1, of.Rank)
	require.NoError(t, n.Flush(t.Context(), 1), "the waiter was told")
	require.True(t, n.Idle())
	v, err := w.await(1, 8, 0)
	require.NoError(t, err, "the error was that piece's")
	require.EqualValues(t, 41, v)
	for r := range w.to[0].ends {
		require.LessOrEqual(t, w.to[0].letGo[r], 0)
	}
	require.True(t, n.empty(n.ends[1]))
	n.closed.Store(true)
	_, err = w.await(1, 8, 0)
	require.ErrorIs(t, err, transport.ErrClosed)
}

// TestAwaitedOverBreaks: it is posted again as others are, and gives up when they do (N4).
func TestAwaitedOverBreaks(t *testing.T) {
	w, b := newBrittle(t, 2, transporttest.FabricConfig{})
	w.serve(t)
	w.mem[1].Word64(0).Store(7)
	_, err := w.await(1, 0, 0)
	require.NoError(t, err)
	for weak := range am.MostTries {
		b.cut(t, weak, nil)
		v, err := w.await(1, 0, 0)
		require.NoError(t, err, "%d more breaks", weak)
		require.EqualValues(t, 7, v)
	}
	b.cut(t, am.MostTries, nil)
	_, err = w.await(1, 0, 0)
	require.ErrorIs(t, err, ErrConnectionLost)
	v, err := w.await(1, 0, 0)
	require.NoError(t, err)
	require.EqualValues(t, 7, v)
}

// TestEmptyEnds: all that has entered a connection has left it when nothing is in flight, whoever posted it and however: else a mender
// would wait for ever.
func TestEmptyEnds(t *testing.T) {
	w, b := newBrittle(t, 2, transporttest.FabricConfig{MaxPost: 3})
	w.serve(t)
	n := w.n[0]
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				switch (g + i) % 3 {
				case 0:
					if _, err := w.await(1, 8*g, 0); err != nil {
						t.Error(err)
					}
				case 1:
					w.put(t, 1, 8*g, uint64(i))
				default:
					id, err := n.Acquire("put", 1, false)
					if err != nil {
						t.Error(err)
						return
					}
					op := w.write(1, 8*g)
					w.fill(id, &op, uint64(i))
					if err := w.postLater("put", id, &op); err != nil {
						t.Error(err)
					}
				}
				if g == 0 && i%40 == 0 {
					b.cut(t, 0, nil)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, n.Flush(t.Context(), 1))
	w.until(t, func() bool { return n.empty(n.ends[1]) })
	require.True(t, n.Idle())
	e := n.ends[1]
	require.Equal(t, e.entered, e.left+e.reported.Load())
	require.Equal(t, e.began.Load(), e.ended.Load()+e.reported.Load())
}

// watched is a NIC that says when something is posted.
type watched struct {
	transport.Domain
	posting func() // called before each Post, if not nil
}

func (p *watched) Post(ops []transport.Op) (int, error) {
	if p.posting != nil {
		p.posting()
	}
	return p.Domain.Post(ops)
}

// TestHeldBackIsPostedByAWaiter: what a flush posts first, which may take long, it posts as one who polls, so that nobody attends meanwhile.
func TestHeldBackIsPostedByAWaiter(t *testing.T) {
	var p *watched
	w := newWorld(t, 2, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { p = &watched{Domain: d}; return p })
	w.serve(t)
	n := w.n[0]
	w.put(t, 1, 0, 1)
	require.NoError(t, n.Flush(t.Context(), 1))
	id, err := n.Acquire("put", 1, false)
	require.NoError(t, err)
	op := w.write(1, 0)
	w.fill(id, &op, 2)
	require.NoError(t, w.postLater("put", id, &op))
	var polling []int32
	p.posting = func() { polling = append(polling, n.pollers.Load()) }
	require.NoError(t, n.Flush(t.Context(), 1))
	require.Equal(t, []int32{1}, polling)
}

// TestLay: an operation that is laid over another keeps nothing of it that is looked at.
func TestLay(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
	n := w.n[0]
	id, err := n.Acquire("x", 1, false)
	require.NoError(t, err)
	op := &n.table.Op(id)[0]
	junk := transport.SGE{Mem: mem.Of(make([]byte, 3)), LKey: 99}
	*op = transport.Op{
		Kind: transport.OpSend, Flags: transport.FlagFence | transport.FlagInline, NSGE: 4, Imm: 5, SGE: [4]transport.SGE{junk, junk, junk, junk},
		RAddr: 1, RKey: 2, Cookie: 3, Arg0: 4, Arg1: 5,
	}
	laid, buf := n.Lay(id, transport.OpRead, 0, 16, 64, 7)
	require.Same(t, op, laid)
	require.Equal(t, 16, buf.Bytes)
	want, key := n.Buffer(id, 16)
	require.Equal(t, want, buf)
	require.Equal(t, transport.Op{
		Kind: transport.OpRead, NSGE: 1, SGE: [4]transport.SGE{{Mem: want, LKey: key}, junk, junk, junk}, RAddr: 64, RKey: 7, Cookie: 3,
	}, *laid)
	n.Abandon(id)
}

// TestTryLay: what is taken, counted, laid and has entered at once is as what is acquired, laid and enters, and where that cannot be nothing is.
func TestTryLay(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
	n := w.n[0]
	e := n.ends[1]
	var tally Tally
	try := func(bytes int) *Laid {
		return n.TryLay(&tally, 1, transport.OpFetchAdd, transport.FlagFence, bytes, 64, 7)
	}
	require.Nil(t, try(8), "no connection")
	require.True(t, n.Idle())
	id, ok := n.TryAcquire(1, false)
	require.True(t, ok)
	n.Lay(id, transport.OpFetchAdd, transport.FlagFence, 8, 64, 7)
	laid, err := n.Enter("add", id)
	require.NoError(t, err)
	want, seq := *laid, n.table.Piece(id).Seq
	require.EqualValues(t, id, want[0].Cookie)
	require.Equal(t, uint32(1), want[0].EP.Index)
	require.Equal(t, transport.FlagFence|transport.FlagSignaled, want[0].Flags)
	n.giveUpLaid(laid)
	op := try(8)
	require.NotNil(t, op)
	require.Same(t, laid, op, "the piece last freed")
	require.Equal(t, want, *op)
	require.Equal(t, seq+1, n.table.Piece(id).Seq)
	require.True(t, n.Pending(1))
	require.False(t, n.empty(e))
	require.Equal(t, [2]uint64{1, 8}, [2]uint64{tally.Ops.Load(), tally.Bytes.Load()})
	n.giveUpLaid(op)
	require.False(t, n.Pending(1))
	require.True(t, n.empty(e))

	require.Nil(t, n.TryLay(nil, 1, transport.OpRead, 0, 8, 64, 7), "no tally")
	require.Nil(t, try(ScratchBytes+1), "too long")
	all := make(map[*Laid]bool)
	for range Pieces {
		op := try(ScratchBytes)
		require.NotNil(t, op)
		all[op] = true
	}
	require.Len(t, all, Pieces)
	require.Nil(t, try(8), "no piece")
	require.EqualValues(t, Pieces+1, tally.Ops.Load())
	for op := range all {
		n.giveUpLaid(op)
	}
	require.True(t, n.Idle())
	require.True(t, n.empty(e))
}
