package soft_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/soft"
)

// chain posts ops together and returns how each ended, in the order in which they did.
func (r *rank) chain(t *testing.T, ops []transport.Op) (ended []transport.Completion) {
	t.Helper()
	require.NoError(t, r.post(ops...))
	for deadline := time.Now().Add(20 * time.Second); len(ended) < len(ops); {
		require.NoError(t, r.poll(10*time.Millisecond))
		for _, c := range r.got {
			if c.Kind != transport.OpPeerDown {
				ended = append(ended, c)
			}
		}
		r.got = r.got[:0]
		require.True(t, time.Now().Before(deadline), "%d of %d operations have ended", len(ended), len(ops))
	}
	return ended
}

// TestBunches posts chains of writes and reads of all lengths together. What they leave is what each does, one after the other.
func TestBunches(t *testing.T) {
	r, _ := job(t, soft.Config{}, 2)
	const far, landing = 1 << 20, 8 << 20 // of the peer's memory that is used; where reads land here
	rnd := rand.New(rand.NewPCG(1, 2))
	there := make([]byte, far)
	require.NoError(t, r.must(r.op(transport.OpRead, 1, 0, 0, far)))
	copy(there, r.mem.Data()[:far])
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	for range rounds {
		for i := range 1 << 16 {
			r.mem.Word64(8 * i).Store(rnd.Uint64()) // what is written
		}
		type landed struct{ at, bytes int }
		var ops []transport.Op
		var reads []landed
		var want [][]byte
		from, to := 0, landing
		kind := transport.OpWrite
		for range 1 + rnd.IntN(60) {
			if rnd.IntN(5) == 0 {
				kind = [...]transport.Kind{transport.OpWrite, transport.OpRead}[rnd.IntN(2)]
			}
			n := []int{rnd.IntN(9), 8, rnd.IntN(200), 4096, rnd.IntN(9000), rnd.IntN(70000)}[rnd.IntN(6)]
			n = min(n, 1<<19-from)
			roff := rnd.IntN(far - n + 1)
			if kind == transport.OpWrite {
				op := r.op(kind, 1, from, roff, n)
				if n <= 64 && rnd.IntN(2) == 0 {
					op.Flags |= transport.FlagInline
				}
				ops = append(ops, op)
				copy(there[roff:], r.mem.Data()[from:from+n])
				from += n
				continue
			}
			ops = append(ops, r.op(kind, 1, to, roff, n))
			reads, want = append(reads, landed{to, n}), append(want, bytes.Clone(there[roff:roff+n]))
			to += n
		}
		for i, c := range r.chain(t, ops) {
			require.Equal(t, ops[i].Cookie, c.Cookie)
			require.Equal(t, transport.StatusOK, c.Status)
			require.EqualValues(t, ops[i].SGE[0].Mem.Bytes, c.Bytes)
		}
		for i, l := range reads {
			require.True(t, bytes.Equal(want[i], r.mem.Data()[l.at:l.at+l.bytes]), "read %d of %d bytes", i, l.bytes)
		}
		require.NoError(t, r.must(r.op(transport.OpRead, 1, landing, 0, far)))
		require.True(t, bytes.Equal(there, r.mem.Data()[landing:landing+far]))
	}
}

// TestBunchWithABadOne: what stands before an operation that is not allowed is done, and nothing that stands behind it.
func TestBunchWithABadOne(t *testing.T) {
	const n, page = 20, 4096
	r, _ := job(t, soft.Config{}, 2)
	hole, err := unix.Mmap(-1, 0, n*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	defer func() { _ = unix.Munmap(hole) }()
	reg, err := r.d.Register(mem.Of(hole), transport.AllAccess)
	require.NoError(t, err)
	for name, spoil := range map[string]struct {
		op   func(op *transport.Op)
		want transport.Status
	}{
		"beyond the region":   {func(op *transport.Op) { op.RAddr = r.peers[1].base + memBytes - 4 }, transport.StatusRemoteAccess},
		"another key":         {func(op *transport.Op) { op.RKey ^= 1 << 30 }, transport.StatusRemoteAccess},
		"not registered":      {func(op *transport.Op) { op.SGE[0].LKey ^= 1 << 30 }, transport.StatusLocalAccess},
		"not mapped any more": {nil, transport.StatusRemoteAccess},
	} {
		for _, bad := range []int{0, 1, 7, n - 1} {
			for _, kind := range []transport.Kind{transport.OpWrite, transport.OpRead} {
				require.NoError(t, r.connect(1))
				ops := make([]transport.Op, n)
				for i := range ops {
					r.mem.Word64(8 * i).Store(uint64(100 + i))
					ops[i] = r.op(kind, 1, 8*i, 8*i, 8)
					if spoil.op == nil {
						ops[i].SGE[0] = transport.SGE{Mem: mem.Of(hole).Slice(i*page, 8), LKey: reg.LKey}
					}
				}
				if spoil.op == nil {
					require.NoError(t, unix.Mprotect(hole[bad*page:(bad+1)*page], unix.PROT_NONE))
				} else {
					spoil.op(&ops[bad])
				}
				for i, c := range r.chain(t, ops) {
					want := transport.StatusOK
					switch {
					case i == bad:
						want = spoil.want
					case i > bad:
						want = transport.StatusFlushed
					}
					require.Equal(t, ops[i].Cookie, c.Cookie)
					require.Equal(t, want, c.Status, "%s: operation %d, the bad one is %d", name, i, bad)
				}
				require.NoError(t, unix.Mprotect(hole, unix.PROT_READ|unix.PROT_WRITE))
			}
		}
	}
	require.NoError(t, r.d.Deregister(reg))
}
