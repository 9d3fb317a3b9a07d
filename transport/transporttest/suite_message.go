package transporttest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

var messageChecks = []check{
	{"PostRecv/send sizes", testSendSizes},
	{"PostRecv/write with immediate", testWriteImm},
	{"PostRecv/shared by all peers", testSharedReceive},
	{"PostRecv/sender waits for a buffer", testReceiverNotReady},
	{"PostRecv/short count", testRecvShort},
	{"PostRecv/message too long", testTooLong},
	{"PostRecv/no sends", testNoSends},
}

// postRecv adds one buffer of this rank's memory.
func (n *node) postRecv(cookie uint64, off, bytes int) {
	n.t.Helper()
	k, err := n.d.PostRecv([]transport.Recv{{Buf: n.sge(off, bytes), Cookie: cookie}})
	require.NoError(n.t, err)
	require.Equal(n.t, 1, k)
}

func testSendSizes(t *testing.T, s *suite) {
	need(t, s.caps.Sends, "sends")
	a, b := s.pair(t, s.room())
	const gathered = 8192 // bytes, at most
	for i, size := range s.sizes() {
		for k, flags := range []uint8{0, transport.FlagInline, 0} {
			if flags != 0 && size > s.caps.MaxInline || k == 2 && (s.caps.MaxSGE < 2 || size < 2 || size > gathered) {
				continue
			}
			seed := uint64(i)
			its := b.around(guard, size)
			fill(a.around(guard, size), seed)
			fill(its, ^seed)
			b.postRecv(uint64(i)<<40+7, guard, size+guard) // longer than the message
			op := a.op(transport.OpSend, 1, guard, 0, size)
			if k == 2 { // a header and its payload, say
				head := min(64, size/2)
				op.NSGE, op.SGE[0], op.SGE[1] = 2, a.sge(guard, head), a.sge(guard+head, size-head)
			}
			op.Flags |= flags
			op.Imm = uint32(i) | 1<<31
			a.must(op)
			c := b.recv()
			require.Equal(t, transport.Completion{
				Cookie: uint64(i)<<40 + 7, EP: c.EP, Kind: transport.OpRecv, Bytes: uint32(size), Imm: op.Imm,
			}, c)
			require.Equal(t, b.ep(0), c.EP, "Connect returns the endpoint that the message came on")
			requirePattern(t, b.mem.Slice(guard, size), seed, guard, "message of %d bytes", size)
			end := guard + size
			requirePattern(t, its.Slice(end, its.Bytes-end), ^seed, end, "behind a message of %d bytes", size)
		}
	}
	a.none()
	b.none()
}

func testWriteImm(t *testing.T, s *suite) {
	need(t, s.caps.WriteImm, "write with immediate")
	a, b := s.pair(t, s.room())
	for i, size := range s.sizes() {
		fill(a.around(guard, size), uint64(i))
		fill(b.around(guard, size), ^uint64(i))
		b.postRecv(uint64(i), 0, 8)
		op := a.op(transport.OpWriteImm, 1, guard, guard, size)
		op.Imm = ^uint32(i)
		a.must(op)
		c := b.recv()
		require.Equal(t, transport.Completion{
			Cookie: uint64(i), EP: b.ep(0), Kind: transport.OpRecv, Bytes: uint32(size), Imm: ^uint32(i),
		}, c)
		requirePattern(t, b.mem.Slice(guard, size), uint64(i), guard, "write of %d bytes with an immediate", size)
		requirePattern(t, b.mem.Slice(0, guard), ^uint64(i), 0, "the receive buffer, which only gives its cookie")
	}
	a.none()
	b.none()
}

// testSharedReceive sends from all ranks to one queue; each message says who it is from.
func testSharedReceive(t *testing.T, s *suite) {
	need(t, s.caps.Sends, "sends")
	const ranks, buffers, bytes = 4, 16, 64
	r := s.rig(t, ranks, buffers*bytes+1024)
	each := s.opt.Ops / 8
	b := r.nodes[0]
	for k := range buffers {
		b.postRecv(uint64(k), k*bytes, bytes)
	}
	for i := range r.nodes[1:] {
		b.ep(i + 1)
	}
	together(t, ranks, func(i int) error {
		n := r.nodes[i]
		if i != 0 {
			if _, err := n.dial(0); err != nil {
				return err
			}
			for k := range each {
				n.mem.Word64(0).Store(uint64(i)<<32 + uint64(k))
				op := n.op(transport.OpSend, 0, 0, 0, 8+k%7*8)
				if err := n.tryPost(op); err != nil {
					return err
				}
				if c, err := n.tryWait(op.Cookie); err != nil || c.Status != transport.StatusOK {
					return fmt.Errorf("send %d of rank %d: status %d: %w", k, i, c.Status, err)
				}
			}
			return nil
		}
		var next [ranks]uint64
		for range each * (ranks - 1) {
			c, err := b.await(s.opt.Timeout, func(c *transport.Completion) bool { return c.Kind == transport.OpRecv })
			if err != nil {
				return err
			}
			word := b.mem.Word64(int(c.Cookie) * bytes).Load()
			from, k := int(word>>32), word&(1<<32-1)
			if from < 1 || from >= ranks || k != next[from] || int(c.Bytes) != 8+int(k)%7*8 || c.EP != b.eps[from] {
				return fmt.Errorf("message %#x in %+v; expected number %v", word, c, next)
			}
			next[from]++
			if n, err := b.d.PostRecv([]transport.Recv{{Buf: b.sge(int(c.Cookie)*bytes, bytes), Cookie: c.Cookie}}); n != 1 || err != nil {
				return fmt.Errorf("post buffer again: %d, %w", n, err)
			}
		}
		return nil
	})
	b.none()
}

// testReceiverNotReady sends more than there are buffers: the rest waits, in order, and nothing breaks.
func testReceiverNotReady(t *testing.T, s *suite) {
	need(t, s.caps.Sends, "sends")
	a, b := s.pair(t, 4096)
	messages := min(5, s.caps.MaxPost)
	var last transport.Op
	for k := range messages {
		a.mem.Word64(k * 8).Store(uint64(k) + 100)
		last = a.op(transport.OpSend, 1, k*8, 0, 8)
		a.post(last)
	}
	time.Sleep(20 * time.Millisecond)
	_, err := a.drain()
	require.NoError(t, err)
	require.Empty(t, a.got, "a send completed without a receive buffer")
	for k := range messages {
		b.postRecv(uint64(k), 0, 8)
		c := b.recv()
		require.EqualValues(t, k, c.Cookie)
		require.Equal(t, transport.StatusOK, c.Status)
		require.EqualValues(t, k+100, b.mem.Word64(0).Load())
	}
	require.Equal(t, transport.StatusOK, a.wait(last.Cookie).Status)
}

// testRecvShort fills the receive queue: a short count, no error, and room again after the buffers were used.
func testRecvShort(t *testing.T, s *suite) {
	need(t, s.caps.Sends, "sends")
	a, b := s.pair(t, 4096)
	const most = 1 << 20
	posted := 0
	for posted < most {
		bufs := make([]transport.Recv, 128)
		for i := range bufs {
			bufs[i] = transport.Recv{Buf: b.sge(0, 8), Cookie: uint64(posted + i)}
		}
		n, err := b.d.PostRecv(bufs)
		require.NoError(t, err)
		posted += n
		if n < len(bufs) {
			break
		}
	}
	require.Less(t, posted, most, "receive buffers without bound: completions would be lost")
	require.Positive(t, posted)
	for k := range 3 {
		a.must(a.op(transport.OpSend, 1, 0, 0, 8))
		require.EqualValues(t, k, b.recv().Cookie, "buffers are used in the order posted")
	}
	b.postRecv(1, 0, 8)
}

func testTooLong(t *testing.T, s *suite) {
	need(t, s.caps.Sends, "sends")
	a, b := s.pair(t, 4096)
	fill(b.mem, 2)
	b.postRecv(1, 0, 16)
	c := a.do(a.op(transport.OpSend, 1, 0, 0, 17))
	require.Equal(t, transport.StatusTooLong, c.Status)
	requirePattern(t, b.mem.Slice(16, 4080), 2, 16, "behind a receive buffer that was too short")
	b.postRecv(2, 0, 16)
	a.redial(1)
	a.must(a.op(transport.OpSend, 1, 0, 0, 16))
	if c = b.recv(); c.Cookie == 1 && c.Status == transport.StatusOK {
		b.none()
		return // the short buffer has waited for the next message
	}
	// Else it comes back with an error, or it was put back behind the other one once its device had reported it, and waits for the one after.
	b.postRecv(3, 0, 16)
	a.must(a.op(transport.OpSend, 1, 0, 0, 16))
	ended := map[uint64]transport.Status{c.Cookie: c.Status}
	waited := func() bool {
		status, there := ended[1]
		return there && status == transport.StatusOK
	}
	for !waited() && len(ended) < 3 {
		c = b.recv()
		require.NotContains(t, ended, c.Cookie)
		ended[c.Cookie] = c.Status
	}
	require.Contains(t, ended, uint64(1))
	for cookie, status := range ended {
		require.Equal(t, cookie == 1 && !waited(), status != transport.StatusOK, "buffer %d: %v", cookie, status)
	}
	b.none()
}

func testNoSends(t *testing.T, s *suite) {
	need(t, !s.caps.Sends, "lack of sends")
	a := s.rig(t, 1, 64).nodes[0]
	n, err := a.d.PostRecv([]transport.Recv{{Buf: a.sge(0, 8)}})
	require.Zero(t, n)
	require.ErrorIs(t, err, transport.ErrUnsupported)
}
