package transporttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

var errorChecks = []check{
	{"T5/keys, bounds and rights at the target", testRemoteAccess},
	{"T5/revoked key", testRevoked},
	{"T5/keys, bounds and rights of this rank", testLocalAccess},
	{"T3/everything behind an error is flushed", testFlushBehind},
	{"T3/an error harms no other endpoint", testOtherEndpoints},
	{"T3/posts to a broken endpoint", testPostBroken},
}

// Layout of the target's memory in the error tests: a registered window with memory around it that no key
// covers, and two more windows with fewer rights.
const (
	windowAt, windowBytes = 4096, 4096
	readOnlyAt            = 16384
	writeOnlyAt           = 24576
	errorRoom             = 32768
)

// forbidden is one way to ask for what must be refused.
type forbidden struct {
	name  string
	spoil func(op *transport.Op)
}

// testRemoteAccess asks for memory in every way that must be refused, between operations that are in order.
func testRemoteAccess(t *testing.T, s *suite) {
	a, b := s.pair(t, errorRoom)
	require.NoError(t, b.d.Deregister(b.reg))
	register := func(at int, access transport.Access) transport.Region {
		reg, err := b.d.Register(b.mem.Slice(at, windowBytes), access)
		require.NoError(t, err)
		return reg
	}
	window := register(windowAt, transport.AllAccess)
	readOnly := register(readOnlyAt, transport.RemoteRead)
	writeOnly := register(writeOnlyAt, transport.LocalWrite|transport.RemoteWrite)
	base := b.mem.Addr()
	to := func(off int, key uint64) func(op *transport.Op) {
		return func(op *transport.Op) { op.RAddr, op.RKey = base+uint64(off), key }
	}
	anyway := []forbidden{
		{"no key", to(windowAt, 0)},
		{"a guessed key", to(windowAt, window.RKey^1<<30)},
		{"the next key", to(windowAt, window.RKey+1)},
		{"another region's key", to(windowAt, readOnly.RKey)},
		{"in front of the region", to(windowAt-64, window.RKey)},
		{"half in front of the region", to(windowAt-8, window.RKey)},
		{"behind the region", to(windowAt+windowBytes, window.RKey)},
		{"half behind the region", to(windowAt+windowBytes-8, window.RKey)},
		{"an address that overflows", func(op *transport.Op) { op.RAddr, op.RKey = ^uint64(0)-7, window.RKey }},
		{"address zero", func(op *transport.Op) { op.RAddr, op.RKey = 0, window.RKey }},
	}
	if window.LKey != window.RKey {
		anyway = append(anyway, forbidden{"a local key", to(windowAt, window.LKey)})
	}
	byKind := map[transport.Kind][]forbidden{
		transport.OpWrite: append(anyway[:len(anyway):len(anyway)], forbidden{"a region that is read-only", to(readOnlyAt, readOnly.RKey)}),
		transport.OpRead:  append(anyway[:len(anyway):len(anyway)], forbidden{"a region that is write-only", to(writeOnlyAt, writeOnly.RKey)}),
	}
	if s.caps.WriteImm {
		byKind[transport.OpWriteImm] = byKind[transport.OpWrite]
		b.postRecvOf(register(0, transport.LocalWrite), 0, 8)
	}
	if s.caps.Atomics64 {
		atomics := []forbidden{
			{"no key", to(windowAt, 0)},
			{"a guessed key", to(windowAt, window.RKey^1<<30)},
			{"in front of the region", to(windowAt-8, window.RKey)},
			{"behind the region", to(windowAt+windowBytes, window.RKey)},
			{"a region that is read-only", to(readOnlyAt, readOnly.RKey)},
			{"a region without atomics", to(writeOnlyAt, writeOnly.RKey)},
		}
		byKind[transport.OpFetchAdd], byKind[transport.OpCompareSwap] = atomics, atomics
	}
	for kind, list := range byKind {
		for i, f := range list {
			t.Logf("kind %d: %s", kind, f.name)
			fill(a.mem, 1)
			fill(b.mem, 2)
			if kind == transport.OpCompareSwap {
				b.mem.Word64(readOnlyAt).Store(0)
				b.mem.Word64(writeOnlyAt).Store(0)
			}
			before := append([]byte(nil), b.mem.Data()...)
			good := a.op(transport.OpWrite, 1, 0, 0, 32)
			to(windowAt+512, window.RKey)(&good)
			bad := a.op(kind, 1, 8192, 0, 16)
			if kind == transport.OpFetchAdd || kind == transport.OpCompareSwap {
				bad.SGE[0], bad.Arg0, bad.Arg1 = a.sge(8192, 8), 0, 77
				if kind == transport.OpFetchAdd {
					bad.Arg0 = 5
				}
			}
			f.spoil(&bad)
			if i%2 == 1 {
				bad = quiet(bad) // an error is reported all the same
			}
			late := a.op(transport.OpWrite, 1, 0, 0, 32)
			to(windowAt+1024, window.RKey)(&late)
			a.post(good, bad, late)
			require.Equal(t, transport.StatusOK, a.wait(good.Cookie).Status, f.name)
			c := a.wait(bad.Cookie)
			require.Equal(t, transport.Completion{Cookie: bad.Cookie, EP: bad.EP, Kind: kind, Status: transport.StatusRemoteAccess, Bytes: c.Bytes}, c, f.name)
			require.Equal(t, transport.StatusFlushed, a.wait(late.Cookie).Status, f.name)
			copy(before[windowAt+512:], a.mem.Data()[:32])
			require.Equal(t, before, b.mem.Data(), "%s: bytes at the target changed", f.name)
			requirePattern(t, a.mem.Slice(8192, 64), 1, 8192, "%s: the local buffer", f.name)
			a.redial(1)
		}
	}
	good := a.op(transport.OpWrite, 1, 0, 0, 32)
	to(windowAt, window.RKey)(&good)
	a.must(good)
	a.none()
}

// postRecvOf is postRecv with a region of one's own.
func (n *node) postRecvOf(reg transport.Region, off, bytes int) {
	n.t.Helper()
	k, err := n.d.PostRecv([]transport.Recv{{Buf: transport.SGE{Mem: n.mem.Slice(off, bytes), LKey: reg.LKey}}})
	require.NoError(n.t, err)
	require.Equal(n.t, 1, k)
}

// testRevoked uses a key after its registration has ended, and after the memory has been registered again.
func testRevoked(t *testing.T, s *suite) {
	a, b := s.pair(t, 4096)
	fill(a.mem, 1)
	fill(b.mem, 2)
	for round := range 8 {
		reg, err := b.d.Register(b.mem.Slice(1024, 512), transport.AllAccess)
		require.NoError(t, err)
		op := a.op(transport.OpRead, 1, 1024, 1024, 512)
		op.RKey = reg.RKey
		a.must(op)
		require.NoError(t, b.d.Deregister(reg))
		if round%2 == 1 {
			again, err := b.d.Register(b.mem.Slice(1024, 512), transport.AllAccess)
			require.NoError(t, err)
			require.NotEqual(t, reg.RKey, again.RKey, "an old key opens new registrations")
		}
		op = a.op(transport.OpWrite, 1, 0, 1024, 512)
		op.RKey = reg.RKey
		require.Equal(t, transport.StatusRemoteAccess, a.do(op).Status)
		requirePattern(t, b.mem, 2, 0, "memory behind a revoked key")
		a.redial(1)
	}
	a.none()
}

// testLocalAccess names memory of this rank that its LKey does not cover.
func testLocalAccess(t *testing.T, s *suite) {
	a, b := s.pair(t, errorRoom)
	require.NoError(t, a.d.Deregister(a.reg))
	window, err := a.d.Register(a.mem.Slice(windowAt, windowBytes), transport.AllAccess)
	require.NoError(t, err)
	readOnly, err := a.d.Register(a.mem.Slice(readOnlyAt, windowBytes), transport.RemoteRead)
	require.NoError(t, err)
	from := func(off int, key uint64) func(op *transport.Op) {
		return func(op *transport.Op) {
			op.SGE[0] = transport.SGE{Mem: a.mem.Slice(off, op.SGE[0].Mem.Bytes), LKey: key}
		}
	}
	cases := []struct {
		name  string
		kind  transport.Kind
		spoil func(op *transport.Op)
	}{
		{"no key", transport.OpWrite, from(windowAt, 0)},
		{"a key of nothing", transport.OpWrite, from(windowAt, window.LKey^1<<30)},
		{"half in front", transport.OpWrite, from(windowAt-8, window.LKey)},
		{"half behind", transport.OpWrite, from(windowAt+windowBytes-8, window.LKey)},
		{"another region", transport.OpRead, from(readOnlyAt, window.LKey)},
		{"read into a region that is read-only", transport.OpRead, from(readOnlyAt, readOnly.LKey)},
		{"read half behind", transport.OpRead, from(windowAt+windowBytes-8, window.LKey)},
	}
	for _, c := range cases {
		fill(a.mem, 1)
		fill(b.mem, 2)
		bad := a.op(c.kind, 1, 0, 0, 16)
		c.spoil(&bad)
		require.Equal(t, transport.StatusLocalAccess, a.do(bad).Status, c.name)
		requirePattern(t, a.mem, 1, 0, "%s: this rank's memory", c.name)
		requirePattern(t, b.mem, 2, 0, "%s: the target's memory", c.name)
		a.redial(1)
	}
	good := a.op(transport.OpWrite, 1, 0, 0, 16)
	from(readOnlyAt, readOnly.LKey)(&good)
	a.must(good) // local reading is always allowed
	a.none()
}

// testFlushBehind puts an error into the middle of a full queue. What is before it is done and silent where it
// was not signalled; all behind it is reported as flushed, signalled or not, and has not happened.
func testFlushBehind(t *testing.T, s *suite) {
	a, b := s.pair(t, 1<<16)
	count := min(s.caps.MaxPost, 100)
	for round := range 4 {
		fill(a.mem, uint64(round))
		fill(b.mem, ^uint64(round))
		at := []int{0, count / 2, count - 1, count / 3}[round]
		ops := make([]transport.Op, count)
		for k := range ops {
			kind := transport.OpWrite
			if k > at && k%4 == 3 && s.caps.Atomics64 {
				kind = transport.OpFetchAdd
			}
			ops[k] = a.op(kind, 1, k*64, k*64, 8)
			ops[k].Arg0 = 1
			if k == at {
				ops[k].RKey = ^ops[k].RKey
			}
			if k%3 == 1 {
				ops[k] = quiet(ops[k])
			}
		}
		a.post(ops...)
		for k := range ops {
			want := transport.StatusOK
			switch {
			case k == at:
				want = transport.StatusRemoteAccess
			case k > at:
				want = transport.StatusFlushed
			case ops[k].Flags&transport.FlagSignaled == 0:
				continue
			}
			c := a.wait(ops[k].Cookie)
			require.Equal(t, want, c.Status, "operation %d of %d, the error is %d", k, count, at)
			require.Equal(t, ops[k].EP, c.EP)
			require.Equal(t, ops[k].Kind, c.Kind)
		}
		a.none()
		for k := range ops {
			if k < at {
				requirePattern(t, b.mem.Slice(k*64, 8), uint64(round), k*64, "write %d before the error", k)
			} else {
				requirePattern(t, b.mem.Slice(k*64, 8), ^uint64(round), k*64, "operation %d behind the error", k)
			}
		}
		a.redial(1)
	}
}

func testOtherEndpoints(t *testing.T, s *suite) {
	r := s.rig(t, 3, 4096)
	a := r.nodes[0]
	bad := a.op(transport.OpWrite, 1, 0, 0, 8)
	bad.RKey = ^bad.RKey
	mixed := []transport.Op{
		a.op(transport.OpWrite, 2, 0, 0, 8), bad, a.op(transport.OpWrite, 2, 0, 8, 8),
		a.op(transport.OpWrite, 0, 0, 64, 8), a.op(transport.OpRead, 2, 128, 8, 8),
	}
	a.post(mixed...)
	for _, op := range mixed {
		want := transport.StatusOK
		if op.Cookie == bad.Cookie {
			want = transport.StatusRemoteAccess
		}
		require.Equal(t, want, a.wait(op.Cookie).Status)
	}
	r.nodes[2].must(r.nodes[2].op(transport.OpWrite, 0, 0, 0, 8))
	r.nodes[2].revive(1)
	a.revive(1)
	r.nodes[1].revive(0) // its end may have broken too
	a.none()
}

// revive writes to a peer, connecting anew if the endpoint turns out to be broken.
func (n *node) revive(peer int) {
	n.t.Helper()
	for range 3 {
		if n.do(n.op(transport.OpWrite, peer, 0, 0, 8)).Status == transport.StatusOK {
			return
		}
		n.redial(peer)
	}
	require.Fail(n.t, "no working connection", "from %d to %d", n.rank, peer)
}

// testPostBroken posts to an endpoint that an error has broken: flushed, as often as one likes.
func testPostBroken(t *testing.T, s *suite) {
	a, b := s.pair(t, 4096)
	fill(b.mem, 2)
	bad := a.op(transport.OpRead, 1, 0, 0, 8)
	bad.RKey = ^bad.RKey
	require.Equal(t, transport.StatusRemoteAccess, a.do(bad).Status)
	for k := range min(2*s.caps.MaxPost, 300) {
		op := a.op(transport.OpWrite, 1, 0, 0, 8)
		if k%2 == 1 {
			op = quiet(op)
		}
		require.Equal(t, transport.StatusFlushed, a.do(op).Status)
	}
	requirePattern(t, b.mem, 2, 0, "memory behind a broken endpoint")
	require.Greater(t, a.redial(1).Incarnation, bad.EP.Incarnation)
	a.must(a.op(transport.OpWrite, 1, 0, 0, 8))
	a.none()
}
