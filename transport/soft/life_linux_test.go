package soft

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/softnic"
	"gopgas/transport"
	"gopgas/transport/shm"
)

// opener opens domains of one process as often as one likes; all their mappers are of one group.
func opener(t *testing.T, size int, cfg Config) func(rank int, job, secret string) *domain {
	t.Helper()
	groups := shm.NewGroup(100, shm.Config{})
	cfg.Mapper = func(transport.Config) (transport.Mapper, error) {
		m := groups[0]
		groups = groups[1:]
		return m, nil
	}
	p := New(cfg)
	return func(rank int, job, secret string) *domain {
		t.Helper()
		d, err := p.Open(t.Context(), transport.Config{Rank: rank, Size: size, Job: job, Secret: []byte(secret), Sched: sched.Goroutine(size)})
		require.NoError(t, err)
		t.Cleanup(func() { _ = d.Close() })
		return d.(*domain)
	}
}

// put writes 8 bytes from a to b through ep and returns how it ended.
func put(t *testing.T, a, b *domain, ep transport.EP) transport.Status {
	t.Helper()
	src, dst := mem.Of([]uint64{5}), mem.Of(make([]uint64, 1))
	reg, err := b.Register(dst, transport.AllAccess)
	require.NoError(t, err)
	op := transport.Op{Kind: transport.OpWrite, Flags: transport.FlagSignaled | transport.FlagInline, NSGE: 1, EP: ep, RAddr: dst.Addr(), RKey: reg.RKey, Cookie: 1}
	op.SGE[0].Mem = src
	n, err := a.Post([]transport.Op{op})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	for deadline := time.Now().Add(10 * time.Second); ; {
		var cq [1]transport.Completion
		if n, err := a.Poll(cq[:]); n == 1 && cq[0].Kind == transport.OpWrite {
			require.NoError(t, err)
			require.NoError(t, b.Deregister(reg))
			return cq[0].Status
		}
		require.False(t, time.Now().After(deadline))
	}
}

func TestStrangersAreRefused(t *testing.T) {
	open := opener(t, 2, Config{})
	a, b := open(0, "job", "secret"), open(1, "job", "secret")
	for name, d := range map[string]*domain{"another job": open(1, "other", "secret"), "another secret": open(1, "job", "SECRET")} {
		_, err := a.Connect(t.Context(), 1, d.Address())
		require.ErrorIs(t, err, errOtherJob, name)
		_, err = d.Connect(t.Context(), 0, a.Address())
		require.ErrorIs(t, err, errOtherJob, name)
	}
	_, err := a.Connect(t.Context(), 0, b.Address())
	require.ErrorContains(t, err, "rank 1 of 2, not of rank 0")
	// A stranger that can map the board and writes its address there is not let in either.
	stranger := open(1, "job", "SECRET")
	writeRecord(a.board.record(1), stranger.me.nonce[0], stranger.address)
	a.board.tell(1)
	require.Eventually(t, func() bool { return a.board.accept(1).Load() == stranger.me.nonce[0] }, 5*time.Second, time.Millisecond)
	require.Nil(t, a.seats[1].p.Load())
	ep, err := a.Connect(t.Context(), 1, b.Address())
	require.NoError(t, err)
	require.Equal(t, transport.StatusOK, put(t, a, b, ep))
}

// TestOldIncarnation closes and opens a rank's domain, whichever of the two holds the link.
func TestOldIncarnation(t *testing.T) {
	for restarted := range 2 {
		open := opener(t, 2, Config{})
		ds := [2]*domain{open(0, "job", "s"), open(1, "job", "s")}
		a := ds[1-restarted]
		b := ds[restarted]
		ep, err := a.Connect(t.Context(), restarted, b.Address())
		require.NoError(t, err)
		require.Equal(t, transport.StatusOK, put(t, a, b, ep))
		for range 3 {
			old := b.Address()
			require.NoError(t, b.Close())
			b = open(restarted, "job", "s")
			_, err = a.Connect(t.Context(), restarted, old)
			require.ErrorIs(t, err, transport.ErrPeerGone)
			next, err := a.Connect(t.Context(), restarted, b.Address())
			require.NoError(t, err)
			require.Greater(t, next.Incarnation, ep.Incarnation)
			require.NotEqual(t, transport.StatusOK, put(t, a, b, ep), "the old endpoint leads to the new rank")
			require.Equal(t, transport.StatusOK, put(t, a, b, next))
			back, err := b.Connect(t.Context(), 1-restarted, a.Address())
			require.NoError(t, err)
			require.Equal(t, next.Incarnation, back.Incarnation)
			require.Equal(t, transport.StatusOK, put(t, b, a, back))
			ep = next
		}
	}
}

// TestAnewCallsFirst opens a rank's domain anew, which connects before the other rank does, whichever of the two holds the link: the endpoint of before leads nowhere.
func TestAnewCallsFirst(t *testing.T) {
	for restarted := range 2 {
		open := opener(t, 2, Config{})
		a, b := open(1-restarted, "job", "s"), open(restarted, "job", "s")
		ep, err := a.Connect(t.Context(), restarted, b.Address())
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, b.Close())
			b = open(restarted, "job", "s")
			_, err = b.Connect(t.Context(), 1-restarted, a.Address())
			require.NoError(t, err)
			require.NotEqual(t, transport.StatusOK, put(t, a, b, ep), "the old endpoint leads to the new rank")
			next, err := a.Connect(t.Context(), restarted, b.Address())
			require.NoError(t, err)
			require.Greater(t, next.Incarnation, ep.Incarnation)
			require.Equal(t, transport.StatusOK, put(t, a, b, next))
			ep = next
		}
	}
}

// TestConnectToWhoCloses: a rank that closes while another one connects with it is gone, and not one that cannot be reached at all.
func TestConnectToWhoCloses(t *testing.T) {
	open := opener(t, 2, Config{})
	a, b := open(0, "job", "s"), open(1, "job", "s")
	require.True(t, b.enter()) // a call is under way, which Close waits for
	s := &b.seats[0]
	s.mu.Lock()
	connected, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := a.Connect(t.Context(), 1, b.Address())
		connected <- err
	}()
	require.Eventually(t, s.receiving.Load, 10*time.Second, time.Millisecond)
	go func() { closed <- b.Close() }()
	require.Eventually(t, b.stop.Load, 10*time.Second, time.Millisecond)
	s.mu.Unlock()
	require.Eventually(t, func() bool { return !s.receiving.Load() }, 10*time.Second, time.Millisecond)
	b.leave()
	require.ErrorIs(t, <-connected, transport.ErrPeerGone)
	require.NoError(t, <-closed)
}

// TestGoneWhileItConnects: a rank whose end comes while another one sets the link up again, and is found by that one's engine before the link is up, when there is
// nothing to report, is gone to the Connect: nobody would be told of it later.
func TestGoneWhileItConnects(t *testing.T) {
	for closing := range 2 {
		open := opener(t, 2, Config{})
		a, b := open(1-closing, "job", "s"), open(closing, "job", "s")
		ep, err := a.Connect(t.Context(), closing, b.Address())
		require.NoError(t, err)
		require.NoError(t, a.Disconnect(ep))
		s := &a.seats[closing]
		p := s.p.Load()
		w := p.link.Load() // and b is there
		require.NoError(t, b.Close())
		require.Eventually(t, p.buried.Load, 10*time.Second, time.Millisecond)
		_, ok := a.lift(s, p, w)
		require.False(t, ok, "an endpoint of a rank that is gone")
		require.NotEqual(t, uint64(linkUp), linkState(p.link.Load()))
		var cq [1]transport.Completion
		n, err := a.Poll(cq[:])
		require.NoError(t, err)
		require.Zero(t, n, "there was no connection: %+v", cq[0])
	}
}

// add adds 1 so often, one after another, to a word of b's, through ep, and returns the last old value.
func add(t *testing.T, a, b *domain, ep transport.EP, times int) (old uint64) {
	t.Helper()
	was, word := mem.Of(make([]uint64, 1)), mem.Of(make([]uint64, 1))
	local, err := a.Register(was, transport.AllAccess)
	require.NoError(t, err)
	reg, err := b.Register(word, transport.AllAccess)
	require.NoError(t, err)
	op := transport.Op{Kind: transport.OpFetchAdd, Flags: transport.FlagSignaled, NSGE: 1, EP: ep, RAddr: word.Addr(), RKey: reg.RKey, Arg0: 1}
	op.SGE[0] = transport.SGE{Mem: was, LKey: local.LKey}
	for range times {
		n, err := a.Post([]transport.Op{op})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		for deadline := time.Now().Add(10 * time.Second); ; {
			var cq [1]transport.Completion
			n, err := a.Poll(cq[:])
			require.NoError(t, err)
			if n == 1 && cq[0].Kind == op.Kind {
				require.Equal(t, transport.StatusOK, cq[0].Status)
				break
			}
			require.False(t, time.Now().After(deadline), "no answer")
		}
	}
	require.NoError(t, a.Deregister(local))
	require.NoError(t, b.Deregister(reg))
	return was.Word64(0).Load()
}

// TestAnewAfterRequests opens a rank's domain anew that has asked for much before: what it asks for then is done too, and so is what it is asked for.
func TestAnewAfterRequests(t *testing.T) {
	for restarted := range 2 {
		for _, times := range []int{1, mailSlots - 1, mailSlots, 2*mailSlots + 5} {
			open := opener(t, 2, Config{})
			a, b := open(1-restarted, "job", "s"), open(restarted, "job", "s")
			for range 3 {
				ep, err := a.Connect(t.Context(), restarted, b.Address())
				require.NoError(t, err)
				back, err := b.Connect(t.Context(), 1-restarted, a.Address())
				require.NoError(t, err)
				require.EqualValues(t, times-1, add(t, a, b, ep, times))
				require.EqualValues(t, times-1, add(t, b, a, back, times))
				require.NoError(t, b.Close())
				b = open(restarted, "job", "s")
			}
		}
	}
}

// TestDeregisterWaits for a peer's engine that is inside, no longer than it lives or has patience.
func TestDeregisterWaits(t *testing.T) {
	open := opener(t, 3, Config{FailureTimeout: 300 * time.Millisecond})
	a, b := open(0, "job", "s"), open(1, "job", "s")
	_, err := b.Connect(t.Context(), 0, a.Address())
	require.NoError(t, err)
	register := func() (transport.Region, uint64) {
		reg, err := a.Register(mem.Of(make([]uint64, 8)), transport.AllAccess)
		require.NoError(t, err)
		return reg, uint64(softnic.Slot(reg.RKey)) + 1
	}
	inside := a.board.hazard(1)

	reg, slot := register()
	inside.Store(slot)
	waits := func() <-chan error {
		done := make(chan error, 1)
		go func() { done <- a.Deregister(reg) }()
		select {
		case err := <-done:
			require.Fail(t, "did not wait", "%v", err)
		case <-time.After(20 * time.Millisecond):
		}
		return done
	}
	done := waits()
	inside.Store(slot + 1) // it has left, for another region
	require.NoError(t, <-done)

	reg, slot = register()
	inside.Store(slot)
	err = a.Deregister(reg)
	require.ErrorContains(t, err, "still copying")
	require.NotZero(t, a.table.Live(), "a region that somebody is inside stays locked")

	a.board.hazard(2).Store(slot) // by a rank that never was
	reg, _ = register()
	require.NoError(t, a.Deregister(reg))

	reg, slot = register()
	inside.Store(slot)
	b.board.state().Store(boardClosing) // as Close does, while its engine is at a chunk
	done = waits()
	inside.Store(0)
	require.NoError(t, <-done)

	reg, slot = register()
	inside.Store(slot)
	require.NoError(t, b.Close())
	require.NoError(t, a.Deregister(reg), "the dead are inside nothing")
}

// TestSlow: latency and bandwidth are at least what was asked for, and latencies overlap.
func TestSlow(t *testing.T) {
	open := opener(t, 1, Config{Latency: 2 * time.Millisecond, Bandwidth: 100 << 20})
	d := open(0, "job", "s")
	ep, err := d.Connect(t.Context(), 0, d.Address())
	require.NoError(t, err)
	m := mem.Of(make([]byte, 2<<20))
	reg, err := d.Register(m, transport.AllAccess)
	require.NoError(t, err)
	run := func(count, bytes int) time.Duration {
		start := time.Now()
		for i := range count {
			op := transport.Op{Kind: transport.OpWrite, NSGE: 1, EP: ep, RAddr: m.Addr() + 1<<20, RKey: reg.RKey}
			op.SGE[0] = transport.SGE{Mem: m.Slice(0, bytes), LKey: reg.LKey}
			if i == count-1 {
				op.Flags = transport.FlagSignaled
			}
			n, err := d.Post([]transport.Op{op})
			require.True(t, n == 1 && err == nil)
		}
		var cq [1]transport.Completion
		for {
			if n, err := d.Poll(cq[:]); n == 1 {
				require.True(t, err == nil && cq[0].Status == transport.StatusOK)
				return time.Since(start)
			}
			require.NoError(t, d.Wait(t.Context()))
		}
	}
	one := run(1, 8)
	require.GreaterOrEqual(t, one, 2*time.Millisecond)
	together := func() bool { return run(100, 8) < 100*time.Millisecond } // one after another they are 200
	require.Eventually(t, together, 20*time.Second, time.Millisecond, "latencies are spent together, not one after another")
	require.GreaterOrEqual(t, run(10, 1<<20), 102*time.Millisecond, "10 MiB at 100 MiB/s")
}

const anotherUserEnv = "SOFT_TEST_ANOTHER_USER"

// TestAnotherUser connects from another user's process: the error names what the kernel asks for.
func TestAnotherUser(t *testing.T) {
	if v := os.Getenv(anotherUserEnv); v != "" {
		addr, err := hex.DecodeString(v)
		require.NoError(t, err)
		d, err := New(Config{}).Open(t.Context(), transport.Config{Rank: 1, Size: 2, Job: "job", Secret: []byte("s")})
		require.NoError(t, err)
		_, err = d.Connect(t.Context(), 0, addr)
		require.Error(t, err)
		fmt.Println("refused:", err)
		require.NoError(t, d.Close())
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	d, err := New(Config{}).Open(t.Context(), transport.Config{Rank: 0, Size: 2, Job: "job", Secret: []byte("s")})
	require.NoError(t, err)
	defer d.Close()
	bin := filepath.Join(t.TempDir(), "soft.test")
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(bin, self, 0o755))
	for dir := filepath.Dir(bin); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	// The shell is the other user's already when it executes the test: what changes its user after exec may not
	// be traced by anybody.
	cmd := exec.Command("sh", "-c", `exec "$0" -test.v -test.run '^TestAnotherUser$'`, bin)
	cmd.Dir = filepath.Dir(bin)
	cmd.Env = append(os.Environ(), anotherUserEnv+"="+hex.EncodeToString(d.Address()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), out.String())
	require.Contains(t, out.String(), "refused:")
	require.Contains(t, out.String(), "/proc/sys/kernel/yama/ptrace_scope")
	require.Contains(t, out.String(), "not permitted")
	require.Contains(t, out.String(), transport.ErrUnsupported.Error())
}
