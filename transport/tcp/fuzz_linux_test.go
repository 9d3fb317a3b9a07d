package tcp

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/wire"
	"gopgas/transport"
)

// FuzzAddress: what is parsed as an address is written as the same bytes.
func FuzzAddress(f *testing.F) {
	f.Add([]byte{})
	f.Add(address{rank: 3, instance: 4}.append(nil))
	for _, device := range []string{"", "10.0.0.1", "::1"} {
		ips, err := listenOn(device, false)
		require.NoError(f, err)
		a := address{rank: 1, instance: 2}
		for _, ip := range ips {
			a.places = append(a.places, netip.AddrPortFrom(ip, 4711))
		}
		f.Add(a.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parseAddress(b)
		if err != nil {
			return
		}
		require.NotEmpty(t, a.places)
		require.LessOrEqual(t, len(a.places), maxPlaces)
		require.Equal(t, b, a.append(nil))
	})
}

// pair is two connected sockets, which use up no ports.
func pair(t testing.TB) (a, b *net.UnixConn) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	var c [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		conn, err := net.FileConn(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		c[i] = conn.(*net.UnixConn)
		t.Cleanup(func() { _ = conn.Close() })
	}
	return c[0], c[1]
}

// feed hands bytes to a link as if they had come in pieces of at most step.
func feed(l *link, b []byte, step int) error {
	for len(b) > 0 && l.alive.Load() {
		vec, _, ok := l.space()
		if !ok {
			return nil
		}
		n := 0
		for _, to := range vec {
			k := copy(to, b[:min(len(b), step-n)])
			b, n = b[k:], n+k
		}
		l.leaveTarget(vec[:len(vec)-1])
		served := l.in.expect
		if err := l.handle(n); err != nil {
			return err
		}
		l.afterBatch(served)
	}
	return nil
}

// honestKey in a fuzzed frame stands for the region's key, which cannot be guessed, and makes its address an
// offset.
const honestKey = 1

// withKeys puts the region's key and address where the frames of b say so.
func withKeys(b []byte, r *testRank) (out []byte) {
	for len(b) > 0 {
		var h wire.Header
		n, err := h.Decode(b)
		if err != nil || n == 0 {
			return append(out, b...)
		}
		if h.RKey == honestKey {
			h.RKey, h.RAddr = r.reg.RKey, h.RAddr+r.open.Addr()
		}
		p := min(h.Payload(), len(b)-n)
		out = append(h.Append(out), b[n:n+p]...)
		b = b[n+p:]
	}
	return out
}

// FuzzFrames lets a link with requests outstanding and receive buffers posted read anything. It must not crash,
// touch memory outside what is registered, or owe more than the window allows.
func FuzzFrames(f *testing.F) {
	var seed []byte
	add := func(h wire.Header, payload int) { seed = append(h.Append(seed), make([]byte, payload)...) }
	add(wire.Header{Kind: wire.Write, Len: 8, RAddr: 8, RKey: honestKey, Flags: wire.AckWanted}, 8)
	add(wire.Header{Kind: wire.Read, Seq: 1, Len: 8, RAddr: 8, RKey: honestKey}, 0)
	add(wire.Header{Kind: wire.FetchAdd, Seq: 2, RAddr: 8, RKey: honestKey, Arg0: 1}, 0)
	f.Add(seed, 1000)
	f.Add(seed, 7)
	add(wire.Header{Kind: wire.Send, Seq: 3, Len: 16}, 16)
	add(wire.Header{Kind: wire.WriteImm, Seq: 4, Len: 16, RAddr: 64, RKey: honestKey, Imm: 5}, 16)
	add(wire.Header{Kind: wire.Send, Seq: 5, Len: 16}, 16)
	add(wire.Header{Kind: wire.Send, Seq: 6, Len: 16}, 16)
	f.Add(seed, 100)
	seed = nil
	add(wire.Header{Kind: wire.Data, Seq: 0, Len: 64, Ack: 1}, 64)
	add(wire.Header{Kind: wire.Value, Seq: 1, Arg0: 7, Ack: 2}, 0)
	add(wire.Header{Kind: wire.Data, Seq: 2, Len: 8192}, 8192)
	add(wire.Header{Kind: wire.NotReady, Seq: 3, Ack: 3}, 0)
	add(wire.Header{Kind: wire.Ready, Seq: 3, Ack: 3}, 0)
	add(wire.Header{Kind: wire.Refuse, Seq: 3, Ack: 3, Status: 3}, 0)
	f.Add(seed, 5000)
	seed = nil
	add(wire.Header{Kind: wire.Write, Len: 9000, RAddr: 8, RKey: honestKey}, 9000)
	add(wire.Header{Kind: wire.Read, Seq: 1, Len: 9000, RAddr: 8, RKey: honestKey}, 0)
	add(wire.Header{Kind: wire.Write, Seq: 2, Len: 9000, RAddr: 8, RKey: honestKey}, 9000)
	add(wire.Header{Kind: wire.Bye, Status: wire.ByeClosed}, 0)
	f.Add(seed, 4000)
	r := openRank(f, 0, 2, Config{MaxPost: 16}, transport.Config{})
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		if step < 1 || step > 1<<16 || len(b) > 1<<17 {
			return
		}
		here, there := pair(t)
		go func() { // takes what the link says
			buf := make([]byte, 1<<16)
			for {
				if _, err := there.Read(buf); err != nil {
					return
				}
			}
		}()
		clear(r.m.Data())
		l, err := newLink(r.domain, 1, transport.EP{Index: 1, Incarnation: 1}, 1, 16, here)
		require.NoError(t, err)
		for {
			n, err := r.PostRecv([]transport.Recv{{Buf: transport.SGE{Mem: r.open.Slice(1024, 64), LKey: r.reg.LKey}}})
			require.NoError(t, err)
			if n == 0 || r.recvs.bufs.Len() >= 2 {
				break
			}
		}
		for _, op := range []transport.Op{
			{Kind: transport.OpRead, NSGE: 1, SGE: [4]transport.SGE{{Mem: r.open.Slice(0, 64), LKey: r.reg.LKey}}},
			{Kind: transport.OpFetchAdd, NSGE: 1, SGE: [4]transport.SGE{{Mem: r.open.Slice(64, 8), LKey: r.reg.LKey}}},
			{Kind: transport.OpRead, NSGE: 2, SGE: [4]transport.SGE{{Mem: r.open.Slice(0, 8000), LKey: r.reg.LKey}, {Mem: r.open.Slice(9000, 192), LKey: r.reg.LKey}}},
			{Kind: transport.OpSend, NSGE: 1, SGE: [4]transport.SGE{{Mem: r.open.Slice(0, 8), LKey: r.reg.LKey}}},
		} {
			op.EP = l.ep
			n, err := l.push(r.domain, []transport.Op{op})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		l.flush()
		if feed(l, withKeys(b, r), step) != nil {
			l.end(endCut)
		}
		r.untouched(t, false)
		require.LessOrEqual(t, l.owed, l.window+1)
		require.LessOrEqual(t, cap(l.pend.buf)+cap(l.cur.buf), 1<<20)
		l.end(endCut)
		require.Equal(t, stateDown, l.state)
		require.Equal(t, l.done, l.tail)
		var cq [64]transport.Completion
		for n := 1; n > 0; { // T1: each outstanding request is reported or was silent; no place is lost
			n, err = r.Poll(cq[:])
			require.NoError(t, err)
		}
		require.Zero(t, l.inflight.Load())
		r.recvs.mu.Lock()
		r.recvs.waiting = nil
		r.recvs.mu.Unlock()
	})
}
