package verbs

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
	"gopgas/transport/verbs/internal/side"
)

func TestParseDevice(t *testing.T) {
	for _, c := range []struct {
		in, device string
		port       int
		bad        bool
	}{
		{in: ""},
		{in: "mlx5_0", device: "mlx5_0"},
		{in: "mlx5_0:2", device: "mlx5_0", port: 2},
		{in: "mlx5_0:", bad: true},
		{in: "mlx5_0:0", bad: true},
		{in: "mlx5_0:x", bad: true},
		{in: ":1", bad: true},
	} {
		device, port, err := parseDevice(c.in)
		require.Equal(t, c.bad, err != nil, c.in)
		if !c.bad {
			require.Equal(t, c.device, device)
			require.Equal(t, c.port, port)
		}
	}
}

func gid(address string, port, kind int) ibv.GID {
	return ibv.GID{Raw: netip.MustParseAddr(address).As16(), Port: uint32(port), Type: uint32(kind)}
}

func TestChooseGID(t *testing.T) {
	link, four, six := gid("fe80::1", 1, ibv.GIDRoCE2), gid("10.9.0.1", 1, ibv.GIDRoCE2), gid("2001:db8::1", 1, ibv.GIDRoCE2)
	old, other, native := gid("10.9.0.1", 1, ibv.GIDRoCE1), gid("10.9.0.2", 2, ibv.GIDRoCE2), gid("fe80::2", 1, ibv.GIDInfiniBand)
	for _, c := range []struct {
		name string
		list []ibv.GID
		link uint32
		want ibv.GID
		text string // of the error
	}{
		{"IPv4 first", []ibv.GID{link, old, four, six}, ibv.LinkEthernet, four, ""},
		{"then global", []ibv.GID{link, old, six}, ibv.LinkEthernet, six, ""},
		{"then link-local", []ibv.GID{old, link}, ibv.LinkEthernet, link, ""},
		{"none of RoCE v2", []ibv.GID{old, other}, ibv.LinkEthernet, ibv.GID{}, "1 are of RoCE v1, none is of RoCE v2; give its interface an IP address"},
		{"none at all", nil, ibv.LinkEthernet, ibv.GID{}, "0 are of RoCE v1"},
		{"InfiniBand", []ibv.GID{other, native}, ibv.LinkInfiniBand, native, ""},
		{"no InfiniBand", []ibv.GID{four}, ibv.LinkInfiniBand, ibv.GID{}, "InfiniBand"},
	} {
		got, err := chooseGID(c.list, 1, c.link)
		if c.text != "" {
			require.ErrorContains(t, err, c.text, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
}

// TestPlan checks W1: whatever the device and the job, the completion queue has room for all that can be in it.
func TestChoosePKey(t *testing.T) {
	for _, c := range []struct {
		table []uint16
		want  int // -1: there is none
	}{
		{[]uint16{0xffff}, 0},
		{[]uint16{0, 0x7fff, 0x8001, 0xffff}, 2}, // a limited member may not talk to another
		{[]uint16{0, 0, 0x7fff, 0x0001}, 2},
		{[]uint16{0, 0}, -1},
		{nil, -1},
	} {
		got, err := choosePKey(len(c.table), func(i int) (uint16, error) { return c.table[i], nil })
		if c.want < 0 {
			require.ErrorIs(t, err, errNoPKey)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%x", c.table)
	}
	broken := errors.New("broken")
	_, err := choosePKey(3, func(int) (uint16, error) { return 0, broken })
	require.ErrorIs(t, err, broken)
}

// TestPath: of two MTUs, and of two numbers of reads, the lesser counts, and both ends come to the same.
func TestPath(t *testing.T) {
	end := func(mtu uint32, reads, link int) *domain {
		return &domain{
			sizes: sizes{reads: reads}, patience: defaultPatience,
			port: port{number: 2, state: ibv.Port{MTU: mtu, LID: 7, LinkLayer: uint32(link)}},
		}
	}
	for _, c := range []struct {
		mtu   [2]uint32 // 1 for 256 bytes, up to 5 for 4096
		reads [2]int
		want  uint32
		most  uint8
	}{
		{mtu: [2]uint32{3, 3}, reads: [2]int{16, 16}, want: 3, most: 16},
		{mtu: [2]uint32{3, 5}, reads: [2]int{16, 1}, want: 3, most: 1},
		{mtu: [2]uint32{5, 1}, reads: [2]int{2, 128}, want: 1, most: 2},
		{mtu: [2]uint32{5, 4}, reads: [2]int{0, 4}, want: 4, most: 0},
	} {
		for _, link := range []int{ibv.LinkEthernet, ibv.LinkInfiniBand} {
			ends := [2]*domain{end(c.mtu[0], c.reads[0], link), end(c.mtu[1], c.reads[1], link)}
			for i, d := range ends {
				card := (&pair{d: ends[1-i], psn: 99}).card()
				path := d.path(card, 11)
				require.Equal(t, c.want, path.MTU, "%+v", c)
				require.Equal(t, c.most, path.Reads, "%+v", c)
				require.EqualValues(t, c.reads[i], path.DestReads)
				require.Equal(t, link == ibv.LinkEthernet, path.Global == 1)
				require.Equal(t, []uint32{7, 99, 11}, []uint32{path.RemoteLID, path.RemotePSN, path.LocalPSN})
			}
		}
	}
}

func TestPlan(t *testing.T) {
	rxe := ibv.Limits{MaxSends: 1 << 20, MaxSGE: 32, MaxCQE: 32767, MaxRecvs: 1 << 20, MaxReads: 128, MaxInitReads: 128}
	for _, c := range []struct {
		change func(l *ibv.Limits)
		size   int
		post   int // 0: does not fit
	}{
		{func(*ibv.Limits) {}, 1, 128},
		{func(*ibv.Limits) {}, 200, 128},
		{func(*ibv.Limits) {}, 1000, 30},
		{func(*ibv.Limits) {}, 20000, 0},
		{func(l *ibv.Limits) { l.MaxCQE = 4 << 20 }, 5000, 128},
		{func(l *ibv.Limits) { l.MaxSends = 64 }, 4, 63},
		{func(l *ibv.Limits) { l.MaxRecvs = 0 }, 4, 128},
		{func(l *ibv.Limits) { l.MaxCQE = 256 }, 1, 10},
		{func(l *ibv.Limits) { l.MaxSends = 3 }, 1, 0},
	} {
		l := rxe
		c.change(&l)
		s, err := plan(&l, c.size, -1)
		if c.post == 0 {
			var limit *transport.LimitError
			require.ErrorAs(t, err, &limit)
			require.NotEmpty(t, limit.Setting)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.post, s.post, "%d ranks", c.size)
		require.GreaterOrEqual(t, s.pairs, c.size)
		require.Equal(t, min(transport.Config{Size: c.size}.Receives(), int(l.MaxRecvs), min(int(l.MaxCQE), mostCQE)/4), s.recvs)
		require.LessOrEqual(t, s.cqe, int(l.MaxCQE))
		require.GreaterOrEqual(t, s.cqe, s.pairs*(s.post+1)+s.recvs, "the queue can overflow")
		require.Less(t, s.post, int(l.MaxSends), "no room for the drain")
	}
}

// TestPlanUnderLimit: where little may be pinned the rings are short, and what is left is divided among the ranks of a process.
func TestPlanUnderLimit(t *testing.T) {
	rxe := ibv.Limits{MaxSends: 1 << 20, MaxSGE: 32, MaxCQE: 32767, MaxRecvs: 1 << 20, MaxReads: 128, MaxInitReads: 128}
	const mib = 1 << 20
	for _, c := range []struct {
		limit    int64
		size     int
		together bool
		post     int
		part     int64
	}{
		// Three ranks: 19 pairs, so 19*129+1024 completions of 64 bytes, 1024 receives of 32, 3*129 operations of 320.
		{-1, 3, true, 128, -1},
		{8 * mib, 3, false, 128, 8*mib - (3475*64 + 32<<10 + 387*320)},
		{8 * mib, 3, true, 64, 8*mib/3 - (2259*64 + 32<<10 + 195*320)},
		{8 * mib, 1, true, 128, 8*mib - (3217*64 + 32<<10 + 129*320)},
		{64 << 10, 1, true, 16, 1}, // nothing is left: whoever registers then is told so
	} {
		s, err := plan(&rxe, c.size, limitOf(c.limit, c.size, c.together))
		require.NoError(t, err)
		require.Equal(t, c.post, s.post, "%+v", c)
		require.Equal(t, s.pairs*(s.post+1)+s.recvs, s.cqe, "the queue can overflow")
		require.Equal(t, c.part, s.part(c.limit, c.size, c.together, true), "%+v", c)
		require.Equal(t, limitOf(c.limit, c.size, c.together), s.part(c.limit, c.size, c.together, false), "%+v", c)
	}
}

// TestPinsRings: devices of software are those that lie on no bus.
func TestPinsRings(t *testing.T) {
	sys := t.TempDir()
	list := filepath.Join(sys, "class")
	require.NoError(t, os.Mkdir(list, 0o755))
	for name, place := range map[string]string{"rxe0": "virtual/infiniband/rxe0", "mlx5_0": "pci0000:00/0000:00:04.0/infiniband/mlx5_0"} {
		require.NoError(t, os.MkdirAll(filepath.Join(sys, place), 0o755))
		require.NoError(t, os.Symlink(filepath.Join(sys, place), filepath.Join(list, name)))
	}
	require.False(t, pinsRings(list, "rxe0"))
	require.True(t, pinsRings(list, "mlx5_0"))
	require.False(t, pinsRings(list, "none"))
}

func TestRegisterError(t *testing.T) {
	for _, c := range []struct {
		err   error
		a     account
		limit bool
		text  []string
	}{
		{
			syscall.ENOMEM,
			account{bytes: 128 << 10, limit: 64 << 10, pinned: 4096, device: "rxe0:1"},
			true,
			[]string{"registering 128.0 KiB with rxe0:1", "4.0 KiB of 64.0 KiB pinned", "RLIMIT_MEMLOCK", "ulimit -l unlimited"},
		},
		{syscall.ENOMEM, account{bytes: 4096, limit: -1, regions: 100, most: 100}, true, []string{"100 registrations, all that the device has"}},
		{syscall.ENOMEM, account{bytes: 4096, limit: -1, regions: 7, most: 100}, true, []string{"7 of 100 registrations", "rdma resource show mr"}},
		{syscall.EFAULT, account{bytes: 4096, limit: -1}, false, []string{"not mapped"}},
		{syscall.EINVAL, account{bytes: 4096, limit: 1}, false, []string{"register 4096 bytes", "invalid argument"}},
	} {
		err := registerError(c.err, c.a)
		require.ErrorIs(t, err, c.err)
		require.Equal(t, c.limit, errors.Is(err, transport.ErrLimit), err.Error())
		for _, s := range c.text {
			require.Contains(t, err.Error(), s)
		}
	}
}

func TestMeet(t *testing.T) {
	ok := meeting{me: 1, peer: 2, self: 7, wants: 7, job: true, size: 4}
	for _, c := range []struct {
		name   string
		change func(m *meeting)
		want   side.Word
	}{
		{"a dial alone", func(*meeting) {}, side.WordAccept},
		{"both dial, this one is lower", func(m *meeting) { m.dialing = true }, side.WordYield},
		{"both dial, this one is higher", func(m *meeting) { m.dialing, m.me, m.peer = true, 3, 2 }, side.WordAccept},
		{"the dialer does not know of the connection there is", func(m *meeting) { m.newer = true }, side.WordYield},
		{"another domain", func(m *meeting) { m.wants = 8 }, side.WordInstance},
		{"another job", func(m *meeting) { m.job, m.wants = false, 8 }, side.WordJob},
		{"itself", func(m *meeting) { m.peer = 1 }, side.WordRank},
		{"no such rank", func(m *meeting) { m.peer = 4 }, side.WordRank},
	} {
		m := ok
		c.change(&m)
		require.Equal(t, c.want, meet(m), c.name)
	}
	// Of two that dial each other, exactly one yields.
	for _, pair := range [][2]int{{0, 1}, {3, 2}} {
		a := meet(meeting{me: pair[0], peer: pair[1], dialing: true, job: true, size: 4})
		b := meet(meeting{me: pair[1], peer: pair[0], dialing: true, job: true, size: 4})
		require.ElementsMatch(t, []side.Word{side.WordAccept, side.WordYield}, []side.Word{a, b})
	}
}

// TestGhostStatus checks how the records are reported that the NIC did not complete with success (T3).
func TestGhostStatus(t *testing.T) {
	const (
		write, add, send = transport.OpWrite, transport.OpFetchAdd, transport.OpSend
		ok, flush        = ibv.StatusOK, ibv.StatusFlush
	)
	for _, c := range []struct {
		kind                transport.Kind
		fault               fault
		first, posted, gone bool
		device              uint32
		want                transport.Status
	}{
		// The target refused: nothing behind has happened.
		{write, faultRefused, true, true, false, ibv.StatusRemAccess, transport.StatusRemoteAccess},
		{write, faultRefused, true, true, true, ibv.StatusRemAccess, transport.StatusPeerGone},
		{write, faultLost, true, true, true, ibv.StatusRemAccess, transport.StatusPeerGone},
		{send, faultRefused, true, true, true, ibv.StatusRemOp, transport.StatusPeerGone},
		{add, faultRefused, true, true, false, ibv.StatusRemAccess, transport.StatusRemoteAccess},
		{send, faultRefused, true, true, false, ibv.StatusRemInvReq, transport.StatusTooLong},
		{send, faultRefused, true, true, false, ibv.StatusRemOp, transport.StatusTooLong},
		{write, faultRefused, false, true, false, ok, transport.StatusFlushed},
		{add, faultRefused, false, true, false, ok, transport.StatusFlushed},
		// This side's NIC refused: what is behind may have been sent.
		{write, faultLocal, true, true, false, ibv.StatusLocProt, transport.StatusLocalAccess},
		{write, faultLocal, true, true, false, ibv.StatusLocQPOp, transport.StatusLocalAccess},
		{add, faultLocal, false, true, false, ok, transport.StatusInDoubt},
		{write, faultLocal, false, true, false, ok, transport.StatusFlushed},
		// No answer: it depends on the verdict.
		{write, faultSilent, true, true, false, ibv.StatusRetryExc, transport.StatusFlushed},
		{write, faultSilent, true, true, true, ibv.StatusRetryExc, transport.StatusPeerGone},
		{add, faultSilent, true, true, true, ibv.StatusRetryExc, transport.StatusInDoubt},
		{add, faultSilent, false, true, true, ok, transport.StatusInDoubt},
		{write, faultSilent, false, true, true, ok, transport.StatusFlushed},
		// Ended for another reason, with operations in flight or posted after that.
		{write, faultPeerClosed, true, true, true, flush, transport.StatusPeerGone},
		{add, faultPeerClosed, true, true, true, flush, transport.StatusInDoubt},
		{write, faultDisconnect, true, true, false, flush, transport.StatusFlushed},
		{add, faultDisconnect, true, true, false, flush, transport.StatusInDoubt},
		{add, faultDisconnect, false, false, false, ok, transport.StatusFlushed},
		{write, faultPeerClosed, false, false, true, ok, transport.StatusFlushed},
	} {
		got := ghostStatus(c.kind, c.fault, c.first, c.posted, c.gone, c.device)
		require.Equal(t, c.want, got, "%+v", c)
	}
}

// TestAckTimeout: a queue pair gives up after half a second, or within a quarter of a longer patience.
func TestAckTimeout(t *testing.T) {
	for patience, want := range map[time.Duration]uint8{
		0: 14, time.Second: 14, 3 * time.Second: 14, defaultPatience: 15, 10 * time.Second: 16, time.Minute: 18, time.Hour: 20, 1 << 62: 20,
	} {
		require.Equal(t, want, ackTimeout(patience), "%v", patience)
	}
}

// TestWords sees that every status and every fault has words of its own.
func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for f := faultRefused; f <= faultDevice; f++ {
		w := f.words(3)
		require.False(t, seen[w] || w == faultNone.words(3), w)
		seen[w] = true
	}
	for status := uint32(1); status <= ibv.StatusRespTimeout; status++ {
		for k := transport.OpWrite; k <= transport.OpCompareSwap; k++ {
			if faultOf(status) != faultLocal {
				require.Contains(t, cause(status, k, 3), "rank 3", "status %d", status)
			}
		}
	}
	e := &StatusError{Op: "write", Peer: 3, Status: "remote access error", Code: 10, Vendor: 0x88, Cause: "why", Err: transport.ErrPeerGone}
	require.Equal(t, "write (rank 3): remote access error (status 10, vendor 0x88): why", e.Error())
	require.ErrorIs(t, e, transport.ErrPeerGone)
	require.Equal(t, "operation of kind 99", kindName(99))
}

func TestRing(t *testing.T) {
	r := newRing(100)
	r.head.Store(^uint32(0) - 50) // the numbers wrap round
	r.tail.Store(^uint32(0) - 50)
	for i := range 100 {
		require.False(t, r.full())
		n := r.enter(record{cookie: uint64(i)})
		require.Equal(t, uint64(i), r.at(n).cookie)
	}
	require.True(t, r.full())
	require.Equal(t, uint64(0), r.at(r.head.Load()).cookie)
	r.head.Add(1)
	require.False(t, r.full())
}

// TestFresh: what Post has taken is reported by Poll as what it takes itself is, in order, however little there is room for.
func TestFresh(t *testing.T) {
	d := &domain{}
	d.table.init(1)
	p := &pair{d: d, peer: &peer{}, ring: newRing(8)}
	d.table.slots[0].Store(p)
	for cookie, signaled := range []bool{false, true, false, true, true} {
		n := p.enter(record{cookie: uint64(cookie), kind: transport.OpWrite, signaled: signaled, asked: true})
		d.poll.done[cookie] = ibv.Done{ID: uint64(n), Status: ibv.StatusOK}
	}
	d.poll.fresh = [2]int{0, 5}
	var got []uint64
	for _, room := range []int{1, 1, 64} {
		cq := make([]transport.Completion, room)
		n, err := d.Poll(cq)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		got = append(got, cq[0].Cookie)
	}
	require.Equal(t, []uint64{1, 3, 4}, got)
	require.False(t, d.poll.anyFresh())
	require.Equal(t, p.tail.Load(), p.head.Load(), "all records are done")
}

func TestCheck(t *testing.T) {
	c := transport.Caps{MaxSGE: 4, MaxMessage: 1 << 20, MaxInline: 64}
	op := transport.Op{Kind: transport.OpFetchAdd}
	_, err := check(&op, &c)
	require.ErrorIs(t, err, errNoAtomics)
	op.Kind = transport.OpSend
	_, err = check(&op, &c)
	require.ErrorIs(t, err, errNoSends)
	sized := func(kind transport.Kind, flags uint8, bytes int) error {
		op := transport.Op{Kind: kind, Flags: flags, NSGE: 1, SGE: [4]transport.SGE{{Mem: mem.Range{Bytes: bytes}}}}
		n, err := check(&op, &c)
		if err == nil {
			require.EqualValues(t, bytes, n)
		}
		return err
	}
	require.NoError(t, sized(transport.OpWrite, transport.FlagInline, 64))
	require.ErrorIs(t, sized(transport.OpWrite, transport.FlagInline, 65), errInline)
	require.NoError(t, sized(transport.OpWrite, 0, 1<<20))
	require.ErrorIs(t, sized(transport.OpWrite, 0, 1<<20+1), errLength)
	require.ErrorIs(t, sized(transport.OpRead, 0, -1), errLength)
	require.ErrorIs(t, sized(transport.OpRead, transport.FlagInline, 8), errInline)
	require.Zero(t, key32(1<<32|5), "a key that does not fit is cut to one that may exist")
	require.Equal(t, uint32(5), key32(5))
}

// TestOpenWithout looks at the error where this machine has no RDMA.
func TestOpenWithout(t *testing.T) {
	d, err := Provider{}.Open(t.Context(), jobConfig(0, 1))
	if err == nil {
		require.NoError(t, d.Close())
		_, err = Provider{}.Open(t.Context(), transport.Config{Size: 1, Device: "mlx9_9:1", Sched: jobConfig(0, 1).Sched})
		require.ErrorContains(t, err, "mlx9_9:1")
	}
	require.ErrorIs(t, err, transport.ErrUnsupported)
	require.True(t, strings.HasPrefix(err.Error(), "verbs: "), err.Error())
	_, err = Provider{}.Open(t.Context(), transport.Config{Rank: 1, Size: 1})
	require.ErrorIs(t, err, errConfig)
}

// TestGhostIsSeen: of who posts to a pair that has ended, and who finds that the device has finished with it, one reports the record.
func TestGhostIsSeen(t *testing.T) {
	limit := 2 * time.Second
	if testing.Short() {
		limit = 50 * time.Millisecond
	}
	var pairs [1000]*pair
	for began := time.Now(); time.Since(began) < limit; {
		for i := range pairs {
			pairs[i] = &pair{d: &domain{}, ring: newRing(1)}
			pairs[i].qp.Handle = 1
			pairs[i].verdict.Store(verdictAlive)
		}
		var at [2]atomic.Int32
		through := func(me int, act func(p *pair)) {
			for i, p := range pairs {
				at[me].Store(int32(i))
				for spins := 0; at[1-me].Load() < int32(i); spins++ {
					if spins > 10_000 {
						runtime.Gosched()
					}
				}
				act(p)
			}
			at[me].Store(int32(len(pairs)))
		}
		var wg sync.WaitGroup
		wg.Go(func() { through(0, (*pair).addGhost) })
		through(1, func(p *pair) {
			p.drained.Store(true)
			p.ripen()
		})
		wg.Wait()
		for _, p := range pairs {
			require.True(t, p.ripe, "nobody reports it")
		}
	}
}

// TestANumberThatIsUsedAgain: a device may give the number of a queue pair that has just ended to the next one. Who receives a message of that one must find it.
func TestANumberThatIsUsedAgain(t *testing.T) {
	d := new(domain)
	d.table.init(2)
	old, next := &pair{qp: ibv.QP{Number: 17}}, &pair{qp: ibv.QP{Number: 17}}
	for _, p := range []*pair{old, next} {
		require.NoError(t, d.table.reserve(p, d))
		d.table.add(p)
	}
	d.table.remove(old)
	require.Same(t, next, d.table.byNumber(17))
	d.table.remove(next)
	require.Nil(t, d.table.byNumber(17))
	require.Empty(t, d.table.number)
}
