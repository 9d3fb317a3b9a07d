package soft_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
	"gopgas/transport/soft"
)

// Of tests of the dead: far less than the patience that peers who live are given, and far more than the death of one takes on a slow machine.
const (
	patience = time.Minute
	promptly = 20 * time.Second
)

// TestProcesses does everything once between processes.
func TestProcesses(t *testing.T) {
	r, ps := job(t, soft.Config{}, 3)
	for i, bytes := range []int{0, 1, 8, 100, 4096, 65537, 1 << 20, 5<<20 + 3} {
		for peer := 1; peer <= 2; peer++ {
			fill(r.mem.Slice(0, bytes), i+peer)
			require.NoError(t, r.must(r.op(transport.OpWrite, peer, 0, 64, bytes)))
			ps[peer].tell("check %d 64 %d", i+peer, bytes)
			ps[peer].tell("fill %d 128 %d", 100+i+peer, bytes)
			require.NoError(t, r.must(r.op(transport.OpRead, peer, 8, 128, bytes)))
			require.NoError(t, check(r.mem.Slice(8, bytes), 100+i+peer))
		}
	}
	// Several pieces, more than a chunk together.
	fill(r.mem.Slice(0, 6<<20), 7)
	op := r.op(transport.OpWrite, 1, 0, 0, 1<<20)
	op.NSGE = 3
	for i, off := range []int{0, 1 << 20, 1<<20 + 300<<10, 6 << 20}[:3] {
		end := []int{1 << 20, 1<<20 + 300<<10, 6 << 20}[i]
		op.SGE[i] = transport.SGE{Mem: r.mem.Slice(off, end-off), LKey: r.reg.LKey}
	}
	require.NoError(t, r.must(op))
	ps[1].tell("check 7 0 %d", 6<<20)

	op = r.op(transport.OpWrite, 1, 0, 0, 8)
	op.RKey ^= 1 << 30
	status, err := r.do(op)
	require.NoError(t, err)
	require.Equal(t, transport.StatusRemoteAccess, status)
	require.NoError(t, r.connect(1))
	require.NoError(t, r.must(r.op(transport.OpWrite, 1, 0, 0, 8)))
	ps[1].tell("close")
	_, err = r.await(5*time.Second, func(c transport.Completion) bool { return c.Kind == transport.OpPeerDown && c.EP == r.eps[1] })
	require.NoError(t, err)
	require.ErrorIs(t, r.connect(1), transport.ErrPeerGone)
	require.NoError(t, r.must(r.op(transport.OpWrite, 2, 0, 0, 8)))
}

// TestProcessAtomics counts on one word with the NIC from two processes and with the CPU of the owner.
func TestProcessAtomics(t *testing.T) {
	r, ps := job(t, soft.Config{}, 2)
	const each = 3000
	ps[1].begin("add 0 %d", 50*each)
	for k := range each {
		op := r.op(transport.OpFetchAdd, 1, 8, 0, 8)
		op.Arg0 = 1 << 32
		if k%7 == 0 {
			op.Kind, op.Arg1 = transport.OpCompareSwap, 5 // never fits: the old value is not zero any more
			op.Arg0 = ^uint64(0)
		}
		require.NoError(t, r.must(op))
	}
	ps[1].end()
	adds := each - (each+6)/7
	require.Equal(t, fmt.Sprint(uint64(adds)<<32+50*each), ps[1].tell("word 0"))
}

// TestProcessMessages sends messages of all lengths there and back.
func TestProcessMessages(t *testing.T) {
	r, ps := job(t, soft.Config{}, 2)
	ps[1].tell("recv 4 %d", 2<<20)
	require.NoError(t, r.postRecvs(2, 2<<20))
	sizes := []int{0, 1, 8, 192, 193, 4096, 100_001, 2 << 20}
	ps[1].begin("echo %d", len(sizes)+1)
	for i, bytes := range sizes {
		fill(r.mem.Slice(0, bytes), i)
		op := r.op(transport.OpSend, 1, 0, 0, bytes)
		op.Imm = uint32(i)
		require.NoError(t, r.must(op))
		c, err := r.await(10*time.Second, isRecv)
		require.NoError(t, err)
		require.Equal(t, transport.Completion{
			Cookie: c.Cookie, EP: r.eps[1], Kind: transport.OpRecv, Bytes: uint32(bytes), Imm: uint32(i) + 1,
		}, c)
		require.NoError(t, check(r.mem.Slice(int(c.Cookie), bytes), i))
		_, err = r.d.PostRecv([]transport.Recv{{Buf: transport.SGE{Mem: r.mem.Slice(int(c.Cookie), 2<<20), LKey: r.reg.LKey}, Cookie: c.Cookie}})
		require.NoError(t, err)
	}
	fill(r.mem.Slice(0, 1000), 99)
	op := r.op(transport.OpWriteImm, 1, 0, 4096, 1000)
	op.Imm = 41
	require.NoError(t, r.must(op))
	c, err := r.await(10*time.Second, isRecv)
	require.NoError(t, err)
	require.EqualValues(t, 42, c.Imm)
	ps[1].end()
	ps[1].tell("check 99 4096 1000")
}

// TestProcessLitmus: a flag written after data is never seen before it, and never torn.
func TestProcessLitmus(t *testing.T) {
	rounds := 5000
	if testing.Short() {
		rounds = 1000
	}
	r, ps := job(t, soft.Config{}, 2)
	ps[1].begin("litmus 0 %d", rounds)
	for k := 1; k <= rounds; k++ {
		bytes := litmusBytes(k)
		for w := range bytes / 8 {
			r.mem.Word64(8 * w).Store(uint64(k))
		}
		r.mem.Word64(litmusData).Store(uint64(k%251) * 0x0101010101010101)
		data, flag := r.op(transport.OpWrite, 1, 0, 0, bytes), r.op(transport.OpWrite, 1, litmusData, litmusData, 8)
		data.Flags = 0
		if k%2 == 0 {
			flag.Flags |= transport.FlagInline
		}
		if k%3 == 0 { // the kernel copies both in one call
			require.NoError(t, r.post(data, flag))
			c, err := r.await(10*time.Second, func(c transport.Completion) bool { return c.Cookie == flag.Cookie })
			require.NoError(t, err)
			require.Equal(t, transport.StatusOK, c.Status)
		} else {
			require.NoError(t, r.post(data))
			require.NoError(t, r.must(flag))
		}
		for deadline := time.Now().Add(20 * time.Second); ; {
			require.NoError(t, r.must(r.op(transport.OpRead, 1, litmusData+64, litmusData+64, 8)))
			if r.mem.Word64(litmusData+64).Load() == uint64(k) {
				break
			}
			if time.Now().After(deadline) {
				require.Fail(t, "no answer", ps[1].line())
			}
		}
	}
	ps[1].end()
}

// TestKilledTarget kills a rank under writes, reads, atomics and messages. Each is reported once; the others
// of the job do not notice but for one completion.
func TestKilledTarget(t *testing.T) {
	for round := range 6 {
		r, ps := job(t, soft.Config{FailureTimeout: patience}, 4)
		for _, p := range []int{2, 3} {
			ps[p].begin("traffic %d 2000 1", 5-p)
			require.Equal(t, "traffic", ps[p].line())
		}
		ps[1].tell("recv 2 64")
		sent := map[uint64]transport.Op{}
		kinds := []transport.Kind{transport.OpWrite, transport.OpRead, transport.OpFetchAdd, transport.OpSend}
		killed := time.Now().Add(time.Hour)
		var failed int
		for k := 0; failed == 0; k++ {
			kind := kinds[k%len(kinds)]
			if round%2 == 0 && kind == transport.OpSend {
				kind = transport.OpWrite // else two sends block all that is behind them
			}
			bytes := []int{8 << 20, 4096, 64}[(k+round)%3]
			if kind == transport.OpFetchAdd {
				bytes = 8
			} else if kind == transport.OpSend {
				bytes = 64
			}
			op := r.op(kind, 1, 0, 0, bytes)
			n, err := r.d.Post([]transport.Op{op})
			require.NoError(t, err)
			if n == 1 {
				sent[op.Cookie] = op
			} else {
				require.NoError(t, r.poll(time.Millisecond))
			}
			if k == 10 {
				time.Sleep(time.Duration(round) * time.Millisecond)
				require.NoError(t, ps[1].cmd.Process.Kill())
				killed = time.Now()
			}
			require.NoError(t, r.poll(0))
			for _, c := range r.got {
				if c.Status != transport.StatusOK {
					failed++
				}
			}
			require.Less(t, time.Since(killed), promptly, "operations to the dead neither fail nor end")
		}
		_, err := r.await(promptly, func(c transport.Completion) bool { return c.Kind == transport.OpPeerDown && c.EP == r.eps[1] })
		require.NoError(t, err, "the death was not reported")
		require.Less(t, time.Since(killed), promptly)
		seen := map[uint64]bool{}
		broken := false
		for len(seen) < len(sent) {
			c, err := r.await(promptly, func(transport.Completion) bool { return true })
			require.NoError(t, err, "%d of %d were reported", len(seen), len(sent))
			op, ok := sent[c.Cookie]
			require.True(t, ok && !seen[c.Cookie], "%+v", c)
			require.Equal(t, op.Kind, c.Kind)
			seen[c.Cookie] = true
			switch c.Status {
			case transport.StatusOK:
				require.False(t, broken, "a success behind an error")
			case transport.StatusInDoubt:
				require.Equal(t, transport.OpFetchAdd, c.Kind)
				broken = true
			case transport.StatusPeerGone, transport.StatusFlushed:
				broken = true
			default:
				require.Fail(t, "status", "%+v", c)
			}
		}
		for _, p := range []int{2, 3} {
			require.NoError(t, r.must(r.op(transport.OpWrite, p, 0, 0, 1<<20)))
			require.Equal(t, "down", ps[p].end())
		}
		require.ErrorIs(t, r.connect(1), transport.ErrPeerGone)
		require.Empty(t, r.got)
	}
}

// TestKilledSender kills a rank whose messages and writes this rank's NIC is in the middle of. Its receive
// buffers serve another rank afterwards, and its memory can be deregistered.
func TestKilledSender(t *testing.T) {
	for round, kind := range []transport.Kind{transport.OpSend, transport.OpWrite, transport.OpFetchAdd, transport.OpSend, transport.OpWrite} {
		r, ps := job(t, soft.Config{FailureTimeout: patience}, 3)
		bytes := 4 << 20
		if kind == transport.OpFetchAdd {
			bytes = 8
		}
		const buffers = 3
		require.NoError(t, r.postRecvs(buffers, 5<<20))
		ps[1].begin("storm %d 0 %d", kind, bytes)
		require.Equal(t, "storming", ps[1].line())
		again := func(c transport.Completion) {
			n, err := r.d.PostRecv([]transport.Recv{{Buf: transport.SGE{Mem: r.mem.Slice(int(c.Cookie), 5<<20), LKey: r.reg.LKey}, Cookie: c.Cookie}})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		// Let it storm for a while, then kill it.
		for end := time.Now().Add(time.Duration(20+3*round) * time.Millisecond); time.Now().Before(end); {
			require.NoError(t, r.poll(time.Millisecond))
			for _, c := range r.got {
				if isRecv(c) {
					again(c)
				}
			}
			r.got = r.got[:0]
		}
		require.NoError(t, ps[1].cmd.Process.Kill())
		_, err := r.await(promptly, func(c transport.Completion) bool { return c.Kind == transport.OpPeerDown })
		require.NoError(t, err)
		// Every buffer is either in the queue or reported.
		for _, c := range r.got {
			require.Equal(t, transport.StatusOK, c.Status)
			again(c)
		}
		r.got = r.got[:0]
		ps[2].tell("connect 0")
		require.NoError(t, r.connect(2))
		ps[2].tell("recv 1 64")
		ps[2].begin("echo %d", 2*buffers)
		places := map[uint64]bool{}
		for range 2 * buffers {
			require.NoError(t, r.must(r.op(transport.OpSend, 2, 0, 0, 64)))
			c, err := r.await(5*time.Second, isRecv)
			require.NoError(t, err, "a buffer is missing after %d of %d", len(places), buffers)
			require.EqualValues(t, 2, c.EP.Index)
			places[c.Cookie] = true
			again(c)
		}
		require.Len(t, places, buffers)
		ps[2].end()
		start := time.Now()
		require.NoError(t, r.d.Deregister(r.reg))
		require.Less(t, time.Since(start), promptly, "waits for the dead")
	}
}

// TestVandal has a process of the job write anything into this rank's queues. This rank goes on: no crash, no
// call that does not end, no byte touched that was not registered.
func TestVandal(t *testing.T) {
	for seed := range 4 {
		r, ps := job(t, soft.Config{FailureTimeout: 200 * time.Millisecond}, 3)
		canary := make([]uint64, 4096)
		readOnly, err := r.d.Register(r.mem.Slice(12<<20, 1<<20), transport.RemoteRead)
		require.NoError(t, err)
		require.NoError(t, r.d.Deregister(r.reg))
		r.reg, err = r.d.Register(r.mem.Slice(0, 1<<20), transport.AllAccess)
		require.NoError(t, err)
		require.NoError(t, r.postRecvs(0, 0))
		fill(r.mem.Slice(12<<20, 1<<20), 5)
		ps[1].tell("connect 0")
		ps[1].begin("vandal %d 400", seed)
		for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); {
			for _, op := range []transport.Op{
				r.op(transport.OpWrite, 2, 0, 0, 4096), r.op(transport.OpFetchAdd, 2, 8, 0, 8), r.op(transport.OpWrite, 0, 0, 4096, 64),
			} {
				n, err := r.d.Post([]transport.Op{op})
				require.NoError(t, err)
				_ = n
			}
			require.NoError(t, r.poll(0))
			r.got = r.got[:0]
			reg, err := r.d.Register(r.mem.Slice(2<<20, 4096), transport.AllAccess)
			require.NoError(t, err)
			_ = r.d.Deregister(reg) // who is said to be inside, and lives, may be waited for in vain
		}
		ps[1].end()
		for _, w := range canary {
			require.Zero(t, w)
		}
		require.NoError(t, check(r.mem.Slice(12<<20, 1<<20), 5))
		require.NotZero(t, readOnly.RKey)
		start := time.Now()
		_ = r.d.Close() // it may report regions that somebody is said to be inside
		require.Less(t, time.Since(start), 20*time.Second)
	}
}
