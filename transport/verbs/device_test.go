package verbs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
	"gopgas/transport/verbs/internal/ibv"
)

// rank is one rank of a test that needs a device.
type rank struct {
	t testing.TB
	*domain
	mem mem.Range
	reg transport.Region
}

// ranks opens n ranks.
func ranks(t testing.TB, n int) []*rank {
	t.Helper()
	var all []*rank
	for i := range n {
		all = append(all, open(t, i, n))
	}
	return all
}

// open opens one rank of n.
func open(t testing.TB, i, n int) *rank {
	t.Helper()
	d, err := Provider{}.Open(t.Context(), jobConfig(i, n))
	transporttest.SkipUnless(t, err)
	r := &rank{t: t, domain: d.(*domain), mem: mem.Of(make([]uint64, memoryBytes/8))}
	t.Cleanup(func() { r.Close() })
	r.reg, err = r.Register(r.mem, transport.AllAccess)
	require.NoError(t, err)
	return r
}

// memoryBytes is what each rank has registered.
const memoryBytes = 16 << 10

func (r *rank) dial(to *rank) transport.EP {
	r.t.Helper()
	ep, err := r.Connect(r.t.Context(), to.rank, to.Address())
	require.NoError(r.t, err)
	return ep
}

// write is a signalled write of 8 bytes.
func (r *rank) write(ep transport.EP, raddr, rkey uint64) transport.Op {
	return transport.Op{
		Kind: transport.OpWrite, Flags: transport.FlagSignaled, EP: ep, NSGE: 1, RAddr: raddr, RKey: rkey, Cookie: 7,
		SGE: [4]transport.SGE{{Mem: r.mem.Slice(0, 8), LKey: r.reg.LKey}},
	}
}

// next waits for one completion.
func (r *rank) next(within time.Duration) transport.Completion {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	for {
		var cq [1]transport.Completion
		n, err := r.Poll(cq[:])
		require.NoError(r.t, err)
		if n == 1 {
			return cq[0]
		}
		require.NoError(r.t, r.Wait(ctx), "no completion within %v", within)
	}
}

func (r *rank) do(op transport.Op) transport.Completion {
	r.t.Helper()
	n, err := r.Post([]transport.Op{op})
	require.NoError(r.t, err)
	require.Equal(r.t, 1, n)
	return r.next(10 * time.Second)
}

// TestExplain looks at the words for failures, and at the target's end of a connection that a bad key broke.
func TestExplain(t *testing.T) {
	all := ranks(t, 2)
	a, b := all[0], all[1]
	ep, back := a.dial(b), b.dial(a)
	bad := a.write(ep, b.mem.Addr(), b.reg.RKey+1)
	c := a.do(bad)
	require.Equal(t, transport.StatusRemoteAccess, c.Status)
	var why *StatusError
	require.ErrorAs(t, a.Explain(c), &why)
	require.Equal(t, "write", why.Op)
	require.Equal(t, 1, why.Peer)
	require.EqualValues(t, ibv.StatusRemAccess, why.Code)
	require.Contains(t, why.Error(), "remote access error")
	require.Contains(t, why.Error(), "not one that rank 1 has registered")

	// The target's end is broken too, and says so at once instead of after half a second without an answer.
	require.Eventually(t, func() bool { return b.peers[0].cur.Load().state.Load() == pairEnded }, 5*time.Second, time.Millisecond)
	c = b.do(b.write(back, a.mem.Addr(), a.reg.RKey))
	require.Equal(t, transport.StatusFlushed, c.Status)
	require.ErrorContains(t, b.Explain(c), "rank 0 has ended the connection, or an operation of its own broke it")
	require.Nil(t, b.Explain(transport.Completion{EP: back}), "nothing to say about a success")
	again := b.dial(a)
	require.Greater(t, again.Incarnation, back.Incarnation)
	require.Equal(t, transport.StatusOK, b.do(b.write(again, a.mem.Addr(), a.reg.RKey)).Status)
}

// TestRefusedByTheDead is the moment in which a killed process has lost its registrations and its listener, and its queue pair
// still refuses: the peer is gone, whatever the operation.
func TestRefusedByTheDead(t *testing.T) {
	for _, kind := range []transport.Kind{transport.OpWrite, transport.OpFetchAdd, transport.OpSend} {
		t.Run(kindName(kind), func(t *testing.T) {
			all := ranks(t, 2)
			a, b := all[0], all[1]
			ep := a.dial(b)
			if kind == transport.OpSend {
				n, err := b.PostRecv([]transport.Recv{{Buf: transport.SGE{Mem: b.mem, LKey: b.reg.LKey}}})
				require.NoError(t, err)
				require.Equal(t, 1, n)
			}
			require.NoError(t, b.Deregister(b.reg))
			require.NoError(t, b.listener.Close())
			op := a.write(ep, b.mem.Addr(), b.reg.RKey)
			op.Kind, op.Arg0 = kind, 1
			n, err := a.Post([]transport.Op{op, a.write(ep, b.mem.Addr(), b.reg.RKey)})
			require.NoError(t, err)
			require.Equal(t, 2, n)
			require.Equal(t, transport.Completion{EP: ep, Kind: transport.OpPeerDown, Status: transport.StatusPeerGone}, a.next(10*time.Second))
			c := a.next(10 * time.Second)
			require.Equal(t, transport.StatusPeerGone, c.Status)
			require.ErrorIs(t, a.Explain(c), transport.ErrPeerGone)
			require.ErrorContains(t, a.Explain(c), "rank 1 has ended, and its registrations with it")
			require.Equal(t, transport.StatusFlushed, a.next(10*time.Second).Status)
			_, err = a.Connect(t.Context(), 1, b.Address())
			require.ErrorIs(t, err, transport.ErrPeerGone)
		})
	}
}

// TestRebuild breaks the target's queue pair behind everybody's back: the initiator's NIC gets no answer, the
// connection is rebuilt, and nobody is called gone.
func TestRebuild(t *testing.T) {
	all := ranks(t, 2)
	a, b := all[0], all[1]
	ep := a.dial(b)
	require.NoError(t, ibv.FailQP(b.peers[0].cur.Load().qp.Handle))
	began := time.Now()
	c := a.do(a.write(ep, b.mem.Addr(), b.reg.RKey))
	require.Equal(t, transport.StatusFlushed, c.Status)
	require.Less(t, time.Since(began), 5*time.Second)
	require.ErrorContains(t, a.Explain(c), "its queue pair is broken")
	next := a.dial(b)
	require.Greater(t, next.Incarnation, ep.Incarnation)
	require.Equal(t, transport.StatusOK, a.do(a.write(next, b.mem.Addr(), b.reg.RKey)).Status)

	// Twice in a row, with nothing in between that got through: now it is gone.
	require.NoError(t, ibv.FailQP(b.peers[0].cur.Load().qp.Handle))
	require.Equal(t, transport.StatusFlushed, a.do(a.write(next, b.mem.Addr(), b.reg.RKey)).Status)
	last := a.dial(b)
	require.NoError(t, ibv.FailQP(b.peers[0].cur.Load().qp.Handle))
	n, err := a.Post([]transport.Op{a.write(last, b.mem.Addr(), b.reg.RKey)})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, transport.Completion{EP: last, Kind: transport.OpPeerDown, Status: transport.StatusPeerGone}, a.next(5*time.Second))
	c = a.next(5 * time.Second)
	require.Equal(t, transport.StatusPeerGone, c.Status)
	require.ErrorIs(t, a.Explain(c), transport.ErrPeerGone)
}

// TestStrangers connects from ranks that do not belong to the job.
func TestStrangers(t *testing.T) {
	us := ranks(t, 2)
	open := func(change func(c *transport.Config)) transport.Domain {
		c := jobConfig(1, 2)
		change(&c)
		d, err := Provider{}.Open(t.Context(), c)
		require.NoError(t, err)
		t.Cleanup(func() { d.Close() })
		return d
	}
	for _, c := range []struct {
		name   string
		change func(c *transport.Config)
		text   string
	}{
		{"wrong secret", func(c *transport.Config) { c.Secret = []byte("guessed") }, "does not know this job's secret"},
		{"no secret", func(c *transport.Config) { c.Secret = nil }, "does not know this job's secret"},
		{"another job", func(c *transport.Config) { c.Job = "other" }, "of another job"},
		{"a rank too high", func(c *transport.Config) { c.Rank, c.Size = 2, 3 }, "no such rank"},
	} {
		_, err := open(c.change).Connect(t.Context(), 0, us[0].Address())
		require.ErrorContains(t, err, c.text, c.name)
		require.NotErrorIs(t, err, transport.ErrPeerGone, c.name)
		for i := range us[0].peers {
			require.Nil(t, us[0].peers[i].cur.Load(), "%s: a stranger has a queue pair", c.name)
		}
	}
	// The address of a domain that has ended, where another one listens now.
	old := us[0].self
	old.Instance++
	_, err := us[1].Connect(t.Context(), 0, old.Append(nil))
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.ErrorContains(t, err, "the rank that published this address has ended")
	us[1].dial(us[0])
}

// TestCrossings counts calls into C and allocations: 64 operations for several peers are posted in one, and their
// completions come back in one.
func TestCrossings(t *testing.T) {
	all := ranks(t, 3)
	a := all[0]
	var ops [ibv.Batch]transport.Op
	for i := range ops {
		to := all[i%3]
		ops[i] = a.write(a.dial(to), to.mem.Addr(), to.reg.RKey)
	}
	var cq [ibv.Batch]transport.Completion
	round := func() (posting, polling int64) {
		before := runtime.NumCgoCall()
		n, err := a.Post(ops[:])
		posting = runtime.NumCgoCall() - before
		require.NoError(t, err)
		require.Equal(t, len(ops), n)
		time.Sleep(5 * time.Millisecond) // until all are done
		before = runtime.NumCgoCall()
		for got := 0; got < len(ops); got += n {
			n, err = a.Poll(cq[:])
			require.NoError(t, err)
		}
		return posting, runtime.NumCgoCall() - before
	}
	best := int64(1 << 30)
	for range 20 {
		posting, polling := round()
		require.EqualValues(t, 1, posting, "calls into C to post %d operations", len(ops))
		best = min(best, polling)
	}
	require.LessOrEqual(t, best, int64(1), "calls into C to poll %d completions; those that were done at once have come with the post", len(ops))

	one := ops[:1]
	single := int64(1 << 30)
	for range 100 {
		before := runtime.NumCgoCall()
		n, err := a.Post(one)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		for n = 0; n == 0 && err == nil; {
			n, err = a.Poll(cq[:])
		}
		require.NoError(t, err)
		single = min(single, runtime.NumCgoCall()-before)
	}
	if strings.HasPrefix(a.port.device, "rxe") { // performs a write within the call that posts it
		require.EqualValues(t, 1, single, "calls into C from a write's post to its completion")
	}
	require.Zero(t, testing.AllocsPerRun(200, func() {
		if n, err := a.Post(one); n != 1 || err != nil {
			panic(fmt.Sprint(n, err))
		}
		for n := 0; n == 0; {
			n, _ = a.Poll(cq[:])
		}
	}), "allocations of a post and a poll")
}

// counters reads the sum of a port's hardware counters that count work.
func counters(t *testing.T, device string) int {
	t.Helper()
	sum := 0
	for _, name := range []string{"sent_pkts", "rcvd_pkts"} {
		text, err := os.ReadFile(filepath.Join("/sys/class/infiniband", device, "ports/1/hw_counters", name))
		require.NoError(t, err)
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		require.NoError(t, err)
		sum += n
	}
	return sum
}

// TestCounters sees the NIC's own counters move with the operations.
func TestCounters(t *testing.T) {
	all := ranks(t, 2)
	a, b := all[0], all[1]
	ep := a.dial(b)
	if a.port.limits.Vendor != 0xffffff {
		t.Skip("Caps: no Soft-RoCE, whose counters have the names this test knows")
	}
	before := counters(t, a.port.device)
	for range 50 {
		require.Equal(t, transport.StatusOK, a.do(a.write(ep, b.mem.Addr(), b.reg.RKey)).Status)
	}
	require.Eventually(t, func() bool { // the kernel reads the counters anew every few milliseconds
		return counters(t, a.port.device)-before >= 100
	}, 5*time.Second, 20*time.Millisecond, "50 writes and 50 acknowledgements, sent and received")
}

// ip runs the program ip, as root in a virtual machine.
func ip(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestLink takes the interface down and up again. It runs where the environment names one that may be taken down.
func TestLink(t *testing.T) {
	nic := os.Getenv("VERBS_TEST_INTERFACE")
	if nic == "" {
		t.Skip("Caps: no interface that may be taken down (VERBS_TEST_INTERFACE)")
	}
	all := ranks(t, 2)
	a, b := all[0], all[1]
	ep := a.dial(b)
	require.Equal(t, transport.StatusOK, a.do(a.write(ep, b.mem.Addr(), b.reg.RKey)).Status)
	ip(t, "link", "set", nic, "down")
	defer ip(t, "link", "set", nic, "up")
	for _, r := range all {
		c := r.next(10 * time.Second)
		require.Equal(t, transport.OpPortDown, c.Kind)
		require.ErrorContains(t, r.Explain(c), "the interface was taken down")
	}
	_, err := Provider{}.Open(t.Context(), jobConfig(0, 1))
	require.ErrorIs(t, err, transport.ErrUnsupported)
	require.ErrorContains(t, err, "the port has no link")

	ip(t, "link", "set", nic, "up")
	require.Eventually(t, func() bool {
		d, err := Provider{}.Open(t.Context(), jobConfig(0, 1))
		return err == nil && d.Close() == nil
	}, 10*time.Second, 20*time.Millisecond)
	// The old connection may have outlived it; if not, a new one is made.
	deadline := time.Now().Add(20 * time.Second)
	for {
		n, err := a.Post([]transport.Op{a.write(a.dial(b), b.mem.Addr(), b.reg.RKey)})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		c := a.next(10 * time.Second)
		for c.Cookie != 7 {
			c = a.next(10 * time.Second)
		}
		if c.Status == transport.StatusOK {
			break
		}
		require.True(t, time.Now().Before(deadline), "nothing gets through: %v", a.Explain(c))
	}
}

// TestMTUs moves several packets each way between ports of different MTUs. It runs where the environment says that there are such.
func TestMTUs(t *testing.T) {
	if os.Getenv("VERBS_TEST_MTUS") == "" {
		t.Skip("Caps: no two ports of different MTUs (VERBS_TEST_MTUS)")
	}
	all := ranks(t, 2)
	require.NotEqual(t, all[0].port.state.MTU, all[1].port.state.MTU)
	const bytes = 8 << 10
	for i, a := range all {
		b := all[1-i]
		ep := a.dial(b)
		op := a.write(ep, b.mem.Addr()+bytes, b.reg.RKey)
		op.SGE[0].Mem = a.mem.Slice(0, bytes)
		for k := range bytes {
			a.mem.Data()[k] = byte(k*(7+i) + k>>8)
		}
		c := a.do(op)
		require.Equal(t, transport.StatusOK, c.Status, "%v", a.Explain(c))
		require.Equal(t, a.mem.Data()[:bytes], b.mem.Data()[bytes:])

		clear(a.mem.Data()[:bytes])
		op.Kind = transport.OpRead
		c = a.do(op)
		require.Equal(t, transport.StatusOK, c.Status, "%v", a.Explain(c))
		require.Equal(t, b.mem.Data()[bytes:], a.mem.Data()[:bytes])
	}
}

// TestMemlock runs as a user with a limit on locked memory, which VERBS_TEST_MEMLOCK says (bytes).
func TestMemlock(t *testing.T) {
	limit, _ := strconv.ParseInt(os.Getenv("VERBS_TEST_MEMLOCK"), 10, 64)
	if limit == 0 {
		t.Skip("Caps: no limit on locked memory (VERBS_TEST_MEMLOCK)")
	}
	a := ranks(t, 1)[0] // has registered memoryBytes
	require.Equal(t, limit, a.Caps().MaxPinned, "Soft-RoCE pins no rings")
	_, err := a.Register(mem.Of(make([]byte, limit)), transport.AllAccess)
	require.ErrorIs(t, err, transport.ErrLimit)
	require.ErrorIs(t, err, syscall.ENOMEM)
	require.ErrorContains(t, err, "RLIMIT_MEMLOCK")
	require.ErrorContains(t, err, "of "+mem.Text(limit)+" pinned already")
	half, err := a.Register(mem.Of(make([]byte, limit/4)), transport.AllAccess)
	require.NoError(t, err)
	require.NoError(t, a.Deregister(half))
}

// TestBudget sets a limit of its own on what a domain registers.
func TestBudget(t *testing.T) {
	d, err := Provider{MaxPinned: 100 << 10}.Open(t.Context(), jobConfig(0, 1))
	transporttest.SkipUnless(t, err)
	defer d.Close()
	require.EqualValues(t, 100<<10, d.Caps().MaxPinned)
	g, err := d.Register(mem.Of(make([]byte, 60<<10)), transport.AllAccess)
	require.NoError(t, err)
	_, err = d.Register(mem.Of(make([]byte, 60<<10)), transport.AllAccess)
	require.ErrorIs(t, err, transport.ErrLimit)
	require.ErrorContains(t, err, "found 60.0 KiB of 100.0 KiB registered by this rank already, needed 60.0 KiB; to change it: PGAS_MAX_PINNED=122880")
	require.NoError(t, d.Deregister(g))
	g, err = d.Register(mem.Of(make([]byte, 100<<10)), transport.AllAccess)
	require.NoError(t, err)
	require.NoError(t, d.Deregister(g))
}

// TestRegionLimit takes all registrations that the device has, half a million on Soft-RoCE, which takes a while and 4 GiB.
func TestRegionLimit(t *testing.T) {
	if os.Getenv("VERBS_TEST_REGIONS") == "" {
		t.Skip("Caps: no time to reach the limit of registrations (VERBS_TEST_REGIONS)")
	}
	a := ranks(t, 1)[0]
	var err error
	n := 1
	for ; n <= a.Caps().MaxRegions; n++ {
		if _, err = a.Register(a.mem.Slice(0, 64), transport.AllAccess); err != nil {
			break
		}
	}
	require.InDelta(t, a.Caps().MaxRegions, n, 16, "the kernel has some of its own")
	var limit *transport.LimitError
	require.ErrorAs(t, err, &limit)
	require.Contains(t, limit.Found, fmt.Sprintf("%d of %d registrations by this rank", n, a.Caps().MaxRegions))
	require.NotEmpty(t, limit.Setting)
	require.Equal(t, transport.StatusOK, a.do(a.write(a.dial(a), a.mem.Addr(), a.reg.RKey)).Status, "nothing else suffers")
}

// TestMany opens and closes domains and registers often: nothing may be left, in this process or in the kernel.
func TestMany(t *testing.T) {
	warm := ranks(t, 2)
	warm[0].dial(warm[1])
	for _, r := range warm {
		require.NoError(t, r.Close())
	}
	before, inKernel := held(), resources(t)
	for range 10 {
		all := ranks(t, 2)
		all[0].dial(all[1])
		for range 500 {
			g, err := all[0].Register(all[0].mem.Slice(0, 4096), transport.AllAccess)
			require.NoError(t, err)
			require.NoError(t, all[0].Deregister(g))
		}
		for _, r := range all {
			require.NoError(t, r.Close())
		}
	}
	require.Eventually(t, func() bool { return held() <= before }, 5*time.Second, 10*time.Millisecond)
	require.Equal(t, inKernel, resources(t))
}

// resources is what the kernel holds for all processes, in its own words.
func resources(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("rdma", "resource").CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}
