package tcp

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/internal/wire"
	"gopgas/transport"
)

// twoRanks opens ranks 0 and 1 and connects them.
func twoRanks(t testing.TB, cfg Config) (a, b *testRank, l *link) {
	a, b = openRank(t, 0, 2, cfg, transport.Config{}), openRank(t, 1, 2, cfg, transport.Config{})
	_, err := a.Connect(t.Context(), 1, b.Address())
	require.NoError(t, err)
	return a, b, a.links[1].Load()
}

func (r *testRank) op(k transport.Kind, l *link, to *testRank, off, roff, bytes int) transport.Op {
	return transport.Op{
		Kind: k, Flags: transport.FlagSignaled, NSGE: 1, EP: l.ep, RAddr: to.open.Addr() + uint64(roff), RKey: to.reg.RKey,
		SGE: [4]transport.SGE{{Mem: r.open.Slice(off, bytes), LKey: r.reg.LKey}},
	}
}

// post posts all and waits until so many completions came, all of them successes.
func (r *testRank) post(t testing.TB, signalled int, ops ...transport.Op) {
	t.Helper()
	for len(ops) > 0 {
		n, err := r.Post(ops)
		require.NoError(t, err)
		ops = ops[n:]
		if n == 0 {
			runtime.Gosched()
		}
	}
	for range signalled {
		c := r.await(t, func(transport.Completion) bool { return true })
		require.Equal(t, transport.StatusOK, c.Status)
	}
}

// TestBatches counts system calls: a batch goes out in one, is read in few and acknowledged in few.
func TestBatches(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	far := b.links[0].Load()
	var out, back int
	for _, c := range []struct {
		l *link
		n *int
	}{{l, &out}, {far, &back}} {
		c.l.mu.Lock()
		for c.l.writing { // who writes has given mu up
			c.l.mu.Unlock()
			runtime.Gosched()
			c.l.mu.Lock()
		}
		write := c.l.writeFn
		c.l.writeFn = func(fd uintptr) { *c.n++; write(fd) }
		c.l.mu.Unlock()
	}
	const batch = 64
	ops := make([]transport.Op, batch)
	for i := range ops {
		ops[i] = a.op(transport.OpWrite, l, b, 8*i, 8*i, 8)
		ops[i].Flags = 0
	}
	ops[batch-1].Flags = transport.FlagSignaled
	a.post(t, 1, ops...)
	l.mu.Lock()
	there := out
	l.mu.Unlock()
	far.mu.Lock()
	acks := back
	far.mu.Unlock()
	require.LessOrEqual(t, there, 2, "system calls for %d puts", batch)
	require.LessOrEqual(t, acks, 3, "system calls for their acknowledgement")
	require.Positive(t, acks)
}

// TestAsksOnce: behind a request that this rank's own keys forbid nothing goes but the question for those before it, though the peer takes its time to answer that.
func TestAsksOnce(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	b.serves(t, a) // what is said at the beginning has been read
	a.serves(t, b)
	far := b.links[0].Load()
	far.rmu.Lock()
	ops := [3]transport.Op{a.op(transport.OpWrite, l, b, 0, 0, 8), a.op(transport.OpRead, l, b, 0, 0, 8), a.op(transport.OpWrite, l, b, 0, 0, 8)}
	ops[2].SGE[0].LKey++
	n, err := a.Post(ops[:])
	require.NoError(t, err)
	require.Len(t, ops, n)
	var sent int
	require.NoError(t, far.raw.Control(func(fd uintptr) { sent, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }))
	far.rmu.Unlock()
	require.NoError(t, err)
	require.Less(t, sent, 4*wire.MaxHeader+8)
	for _, want := range []transport.Status{transport.StatusOK, transport.StatusOK, transport.StatusLocalAccess} {
		require.Equal(t, want, a.await(t, func(transport.Completion) bool { return true }).Status)
	}
}

// TestLongBatch: long puts that were posted one by one while somebody was sending go out together.
func TestLongBatch(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	l.mu.Lock()
	for l.writing {
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
	l.writing = true
	l.mu.Unlock()
	const puts, bytes = 6, 64 << 10
	for range puts {
		n, err := a.Post([]transport.Op{a.op(transport.OpWrite, l, b, 0, 0, bytes)})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		before := l.next
		require.True(t, l.fillLocked(atOnce))
		require.Equal(t, uint64(puts), l.next-before, "requests in one batch")
		require.Len(t, l.vector(), callSegs, "pieces of one system call")
		l.writing = false
	}()
	l.flush()
	for range puts {
		c := a.await(t, func(transport.Completion) bool { return true })
		require.Equal(t, transport.StatusOK, c.Status)
	}
	for _, full := range []batch{{bytes: longBytes}, {buf: make([]byte, batchBytes)}, {segs: make([]segment, batchSegs)}} {
		require.False(t, full.takesMore())
	}
}

// TestNoAllocations: C6, for each kind, inline and from where it lies.
func TestNoAllocations(t *testing.T) {
	if raceBuild {
		t.Skip("under the race detector every system call copies")
	}
	a, b, l := twoRanks(t, Config{})
	cq := make([]transport.Completion, 1)
	for name, op := range map[string]transport.Op{
		"put": a.op(transport.OpWrite, l, b, 0, 0, 8), "get": a.op(transport.OpRead, l, b, 0, 0, 8), "add": a.op(transport.OpFetchAdd, l, b, 0, 0, 8),
		"long put": a.op(transport.OpWrite, l, b, 0, 0, 65536), "long get": a.op(transport.OpRead, l, b, 0, 0, 65536),
	} {
		ops := []transport.Op{op}
		once := func() {
			if n, err := a.Post(ops); n != 1 || err != nil {
				panic(err)
			}
			for n := 0; n == 0; n, _ = a.Poll(cq) {
				if err := a.Wait(t.Context()); err != nil {
					panic(err)
				}
			}
		}
		for range 100 {
			once()
		}
		require.Less(t, testing.AllocsPerRun(200, once), 0.5, name)
	}
}

// TestReadThenOverwrite reads much and overwrites it at once, without a fence, again and again: T2 says that the
// read brings what was there before.
func TestReadThenOverwrite(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	const bytes = 48 << 10
	for round := range 50 {
		for i := range b.open.Data()[:bytes] {
			b.open.Data()[i] = byte(round)
			a.open.Data()[i] = byte(round + 1)
		}
		read := a.op(transport.OpRead, l, b, bytes, 0, bytes)
		over := a.op(transport.OpWrite, l, b, 0, 0, []int{bytes, 64}[round%2])
		add := a.op(transport.OpFetchAdd, l, b, 2*bytes, bytes-8, 8)
		add.Arg0 = 1
		a.post(t, 3, read, over, add)
		for i, got := range a.open.Slice(bytes, bytes).Data() {
			if got != byte(round) {
				require.Equal(t, byte(round), got, "round %d, byte %d of what was read", round, i)
			}
		}
		require.Equal(t, byte(round+1), b.open.Data()[0])
	}
	b.links[0].Load().mu.Lock()
	defer b.links[0].Load().mu.Unlock()
	require.Zero(t, b.links[0].Load().lent)
}

// TestCrossingMessages has both ranks send more than there are buffers, and write and read beside: answers must
// not wait behind messages, or both would wait for ever.
func TestCrossingMessages(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	_, err := b.Connect(t.Context(), 0, a.Address())
	require.NoError(t, err)
	far := b.links[0].Load()
	done := make(chan struct{})
	const messages = 200
	side := func(r, to *testRank, l *link) {
		sent, received, done, posted := 0, 0, 0, 0
		for received < messages || done < 2*messages {
			if sent < messages && sent <= done/2+20 {
				ops := []transport.Op{r.op(transport.OpSend, l, to, 0, 0, []int{8, 9000}[sent%2]), r.op(transport.OpRead, l, to, 65536, 0, 8)}
				if n, err := r.Post(ops); err == nil && n == 2 {
					sent++
				}
			}
			// A buffer comes late, and only when an own operation has completed since.
			if posted < messages && posted <= done {
				n, err := r.PostRecv([]transport.Recv{{Buf: transport.SGE{Mem: r.open.Slice(80<<10, 9000), LKey: r.reg.LKey}}})
				if err != nil {
					panic(err)
				}
				posted += n
			}
			var cq [8]transport.Completion
			n, err := r.Poll(cq[:])
			if err != nil {
				panic(err)
			}
			for _, c := range cq[:n] {
				if c.Status != transport.StatusOK {
					panic(c.Status)
				}
				if c.Kind == transport.OpRecv {
					received++
				} else {
					done++
				}
			}
			if n == 0 {
				runtime.Gosched()
			}
		}
	}
	go func() { defer close(done); side(b, a, far) }()
	side(a, b, l)
	<-done
}

// TestEndsWhileCalled: a link that breaks while its peer is called for a message again has its operations reported, and who waits for that is wakened.
func TestEndsWhileCalled(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	b.serves(t, a)
	a.serves(t, b)
	far := b.links[0].Load()
	n, err := b.Post([]transport.Op{b.op(transport.OpSend, far, a, 0, 0, 8)}) // for which a has no buffer
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.waits && !l.writing
	}, testPatience, time.Millisecond)
	far.rmu.Lock() // so that a's own operation stays under way
	defer far.rmu.Unlock()
	n, err = a.Post([]transport.Op{a.op(transport.OpWrite, l, b, 0, 0, 8)})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	l.mu.Lock()
	l.writeFn = func(uintptr) {
		l.end(endCut)
		time.Sleep(50 * time.Millisecond) // the reader has noticed
		l.wn, l.werr = 0, unix.EPIPE
	}
	l.mu.Unlock()
	waited := make(chan error, 1)
	go func() { waited <- a.Wait(t.Context()) }()
	require.Eventually(t, func() bool { return a.sleeping.Load() == asleep }, testPatience, time.Millisecond)
	n, err = a.PostRecv([]transport.Recv{{Buf: transport.SGE{Mem: a.open.Slice(64, 64), LKey: a.reg.LKey}}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	select {
	case err := <-waited:
		require.NoError(t, err)
	case <-time.After(testPatience / 4):
		require.Fail(t, "nobody was wakened", "%d completions", a.cq.count.Load())
	}
	require.Equal(t, transport.StatusFlushed, a.await(t, func(transport.Completion) bool { return true }).Status)
}

func TestListenOn(t *testing.T) {
	ips, err := listenOn("", false)
	require.NoError(t, err)
	require.Equal(t, []netip.Addr{netip.MustParseAddr("127.0.0.1")}, ips)
	ips, err = listenOn("::1", false)
	require.NoError(t, err)
	require.Equal(t, []netip.Addr{netip.MustParseAddr("::1")}, ips)
	ips, err = listenOn("lo", true)
	require.NoError(t, err)
	require.Contains(t, ips, netip.MustParseAddr("127.0.0.1"))
	for _, anywhere := range []string{"0.0.0.0", "::"} {
		_, err = listenOn(anywhere, true)
		require.ErrorIs(t, err, errAnywhere)
	}
	for _, local := range []string{"fe80::1", "fe80::1%lo"} {
		_, err = listenOn(local, true)
		require.ErrorIs(t, err, errLinkLocal)
	}
	_, err = listenOn("no-such-nic0", false)
	require.ErrorIs(t, err, transport.ErrUnsupported)
	require.ErrorContains(t, err, "no-such-nic0")
	if ips, err = listenOn("", true); err != nil { // a machine without a network
		require.ErrorIs(t, err, errNoNetwork)
	}
	for _, ip := range ips {
		require.False(t, ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast(), "%v", ip)
	}
	var many []netip.Addr
	for s := range strings.FieldsSeq("fe80::1 2001:db8::1 169.254.1.1 10.0.0.1 224.0.0.1 ::") {
		many = append(many, netip.MustParseAddr(s))
	}
	require.Equal(t, "[10.0.0.1 2001:db8::1]", fmt.Sprint(reachable(many)))
}

// TestListensWhereTold looks at the kernel's table of listening sockets.
func TestListensWhereTold(t *testing.T) {
	d := openRank(t, 0, 1, Config{}, transport.Config{Device: "127.0.0.1"})
	for _, l := range d.listeners {
		require.True(t, netip.MustParseAddrPort(l.Addr().String()).Addr().IsLoopback())
	}
	a, err := parseAddress(d.Address())
	require.NoError(t, err)
	require.Equal(t, d.me, a)
	table, err := os.ReadFile("/proc/net/tcp")
	require.NoError(t, err)
	port := fmt.Sprintf("%04X", a.places[0].Port())
	require.Contains(t, string(table), "0100007F:"+port)
	require.NotContains(t, string(table), "00000000:"+port+" 00000000:0000 0A")
}

// TestBatch sends a batch in pieces of all lengths and looks at what comes out.
func TestBatch(t *testing.T) {
	for step := 1; step < 200; step += 7 {
		var b batch
		var want []byte
		lie := []byte("what lies elsewhere and is sent from there")
		pins, err := softnic.NewPins(1 << 20)
		require.NoError(t, err)
		keys, err := softnic.NewTable(pins, 4)
		require.NoError(t, err)
		reg, err := keys.Add(mem.Of(lie), transport.AllAccess)
		require.NoError(t, err)
		for i := range 5 {
			h := wire.Header{Kind: wire.Write, Seq: uint64(i), Len: 10}
			b.header(&h)
			want = h.Append(want)
			copy(b.room(10).Data(), "0123456789")
			want = append(want, "0123456789"...)
			r, hold := keys.Hold(mem.Of(lie).Addr(), reg.RKey, len(lie), transport.RemoteRead)
			require.NotNil(t, hold)
			b.refer(r, hold)
			want = append(want, lie...)
		}
		require.Equal(t, len(want), b.bytes)
		l := &link{cur: b}
		var got []byte
		regions := 0
		for !l.cur.empty() {
			n := 0
			for _, p := range l.vector() {
				p = p[:min(len(p), step-n)]
				got = append(got, p...)
				n += len(p)
			}
			k := l.cur.advance(n)
			regions += k
		}
		require.Equal(t, string(want), string(got))
		require.Equal(t, 5, regions)
		h, err := keys.Revoke(reg)
		require.NoError(t, err)
		require.True(t, h.Idle(), "a hold was not released")
		require.NoError(t, keys.Free(h))
	}
}

// TestCloseLeavesNothing opens and closes again and again.
func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		a, b, _ := twoRanks(t, Config{})
		require.NoError(t, b.Close())
		require.NoError(t, a.Close())
		require.ErrorIs(t, a.Close(), transport.ErrClosed)
	}
	for end := time.Now().Add(testPatience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(end), "goroutines were left behind")
	}
}
