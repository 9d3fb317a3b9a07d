package hose

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/firehose"
	"gopgas/internal/mem"
	"gopgas/regmgr"
	"gopgas/transport"
)

const unit = 32 << 10

// alone rounds the memory's beginning up to where a bucket of the smallest size begins that lies in it whole.
func (p *pair) alone() int { return int(unit-p.mem.Addr()%uint64(os.Getpagesize())) % unit }

// own begins a transfer of rank 1 from or to its own exposed memory.
func (p *pair) own(t testing.TB, off, bytes int) *regmgr.Hold {
	h := new(regmgr.Hold)
	require.NoError(t, p.regs[1].Acquire(h, regmgr.Request{Mem: p.mem.Slice(off, bytes), Access: transport.LocalWrite}))
	require.True(t, h.Region().Contains(p.mem.Slice(off, bytes)))
	return h
}

// attach has rank 0 use a bucket.
func (p *pair) attach(t testing.TB, off int) {
	_, direct, _, err := p.set[0].Attach("get", 0, p.far, p.addr(off), 8, nil, true)
	require.NoError(t, err)
	require.True(t, direct)
	p.release(0)
}

// trim has the owner give up what is idle: as Go memory it could stay.
func (p *pair) trim() { p.regs[1].Trim(exposed) }

func (p *pair) leave(t testing.TB) {
	require.NoError(t, p.set[0].Leave(t.Context(), []*Far{p.far}))
	p.set[0].Progress()
}

// TestOwnUseOfAHeldBucket: what a peer holds is not registered again for the owner, and stays when the peer lets go of it.
func TestOwnUseOfAHeldBucket(t *testing.T) {
	p := newPair(t)
	reg, nic := p.regs[1], p.nic[1]
	require.NoError(t, p.set[0].Fix(unit))
	at := p.alone()
	p.attach(t, at)
	bytes, n := nic.registered()
	require.Equal(t, [2]int{unit, 1}, [2]int{bytes, n})
	require.True(t, first(reg.Known(p.mem.Slice(at+100, 4096), 0)), "whoever chooses a way is told")

	first := p.own(t, at+100, 4096)
	again := p.own(t, at, unit)
	require.Same(t, first.Region(), again.Region())
	require.Equal(t, first.LKey(), uint64(1<<32)*nic.next, "the registration that the peer's key opens")
	bytes, n = nic.registered()
	require.Equal(t, [2]int{unit, 1}, [2]int{bytes, n}, "registered once")
	s := reg.Stats()
	require.Equal(t, [3]int64{unit, unit, unit}, [3]int64{s.Bytes, s.Lent, s.Joint}, "charged once")
	require.Equal(t, [4]uint64{1, 0, 2, 0}, [4]uint64{s.Joined, s.Registrations, s.Hits, s.MissCold})

	p.leave(t)
	_, n = nic.registered()
	require.Equal(t, 1, n, "it is in use")
	reg.Release(first)
	reg.Release(again)
	_, n = nic.registered()
	require.Equal(t, 1, n, "left pinned")
	require.EqualValues(t, unit, reg.Trim(1))
	_, n = nic.registered()
	require.Zero(t, n, "who makes room gets it at once, from no victim")
	s = reg.Stats()
	require.Equal(t, [3]int64{}, [3]int64{s.Bytes, s.Lent, s.Joint})
	p.end(t)
}

func first(a, _ bool) bool { return a }

// TestPeerUseOfAnOwnBucket: what the owner has registered for itself costs a peer a message, but no registration.
func TestPeerUseOfAnOwnBucket(t *testing.T) {
	p := newPair(t)
	at := p.alone()
	require.NoError(t, p.set[0].Fix(unit))
	h := p.own(t, at, unit)
	s := p.regs[1].Stats()
	require.Equal(t, [4]uint64{1, 0, 0, 1}, [4]uint64{s.Joined, s.Registrations, s.Hits, s.MissCold})
	p.attach(t, at)
	_, n := p.nic[1].registered()
	require.Equal(t, 1, n)
	_, owner := p.set[1].Stats()
	require.Equal(t, [2]uint64{1, 1}, [2]uint64{owner.Registered, owner.Shared})
	p.regs[1].Release(h)
	require.Zero(t, p.regs[1].Trim(1), "the peer still holds it")
	_, n = p.nic[1].registered()
	require.Equal(t, 1, n)
	s = p.regs[1].Stats()
	require.Equal(t, [2]int64{unit, 0}, [2]int64{s.Lent, s.Joint})
	p.end(t)
}

// TestOwnUseBesideBuckets: across the end of a bucket, and where a bucket costs much more than what is used of it, a transfer of the owner
// has a registration of its own.
func TestOwnUseBesideBuckets(t *testing.T) {
	p := newPair(t)
	require.NoError(t, p.set[0].Fix(unit))
	at := p.alone()
	p.attach(t, at)
	for _, part := range [][2]int{{at + unit - 4096, 8192}, {at + 3*unit, 4096}} {
		p.regs[1].Release(p.own(t, part[0], part[1]))
	}
	s := p.regs[1].Stats()
	require.Equal(t, [2]uint64{0, 2}, [2]uint64{s.Joined, s.Registrations})
	p.trim()
	p.end(t)
}

// TestOwnUseAcrossHeldBuckets: a transfer of the owner's across the end of two buckets that a peer holds has these pages registered once more, and they
// are charged once more: what is charged is what the NIC has. It goes when room is needed, and they stay.
func TestOwnUseAcrossHeldBuckets(t *testing.T) {
	p := newPair(t)
	reg, nic := p.regs[1], p.nic[1]
	require.NoError(t, p.set[0].Fix(unit))
	at, page := p.alone(), os.Getpagesize()
	p.attach(t, at)
	p.attach(t, at+unit)
	has := func(bytes, n int) {
		t.Helper()
		registered, many := nic.registered()
		require.Equal(t, [2]int{bytes, n}, [2]int{registered, many})
		require.EqualValues(t, bytes, reg.Stats().Bytes)
	}
	has(2*unit, 2)
	h := p.own(t, at+unit-page, 2*page)
	has(2*unit+2*page, 3)
	reg.Release(h)
	has(2*unit+2*page, 3)
	require.EqualValues(t, 2*page, reg.Trim(1))
	has(2*unit, 2)
	p.leave(t)
	p.end(t)
}

// TestTogether: by hand, with 4 us for a registration and 0.1 ns a byte.
func TestTogether(t *testing.T) {
	c := firehose.Costs{Register: 4000, RegisterByte: 0.1}
	for _, x := range []struct {
		bucket, use uint64
		c           firehose.Costs
		want        bool
	}{
		{32000, 32000, firehose.Costs{}, true}, // nothing is wasted
		{32000, 31999, firehose.Costs{}, false},
		{32000, 16000, c, false}, // 7.2 against 5.6 us
		{32000, 18000, c, true},  // 5.8, of which 5/4 are 7.25
		{8000, 8, c, true},       // 4.8 against 4.0008
		{1 << 20, 8, c, false},
	} {
		require.Equal(t, x.want, together(x.bucket, x.use, x.c), "%+v", x)
	}
}

// TestOwnUseByPolicy: a policy does with buckets as with other registrations, but for those that peers hold.
func TestOwnUseByPolicy(t *testing.T) {
	for _, c := range []struct {
		policy regmgr.Policy
		left   int // registrations after the use of a bucket of the owner's
	}{
		{regmgr.OnDemand, 0},
		{regmgr.LeavePinned, 1},
		{regmgr.LeavePinnedNoEvict, 1},
		{regmgr.Pipelined, 0},
		{regmgr.PipelinedLeavePinned, 1},
		{regmgr.Predictive, 0}, // without a helper
	} {
		t.Run(c.policy.String(), func(t *testing.T) {
			p := newPairOf(t, regmgr.Config{Policy: c.policy})
			at := p.alone()
			p.regs[1].Release(p.own(t, at, unit))
			_, n := p.nic[1].registered()
			require.Equal(t, c.left, n)
			require.NoError(t, p.set[0].Fix(unit))
			p.attach(t, at)
			p.regs[1].Release(p.own(t, at, unit))
			_, n = p.nic[1].registered()
			require.Equal(t, 1, n)
			p.end(t)
		})
	}
	p := newPairOf(t, regmgr.Config{Policy: regmgr.Bounce})
	require.NoError(t, p.set[0].Fix(unit))
	p.attach(t, p.alone())
	require.ErrorIs(t, p.regs[1].Acquire(new(regmgr.Hold), regmgr.Request{Mem: p.mem.Slice(p.alone(), 8)}), regmgr.ErrCopy)
	p.end(t)
}

// TestOwnUseIsForeseen: the helper sees the uses of buckets, gives those back that nobody holds, and has them registered ahead.
func TestOwnUseIsForeseen(t *testing.T) {
	p := newPairOf(t, regmgr.Config{Policy: regmgr.Predictive, Ahead: &regmgr.Ahead{}})
	at := p.alone()
	gaveBack := false
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		h := p.own(t, at, unit)
		p.regs[1].Release(h)
		for range 20 {
			time.Sleep(time.Millisecond)
			_, n := p.nic[1].registered()
			gaveBack = gaveBack || n == 0
		}
		if s := p.regs[1].Stats(); gaveBack && s.Prediction.Made > 2 {
			break
		}
	}
	require.True(t, gaveBack)
	s := p.regs[1].Stats()
	require.Greater(t, s.Prediction.Made, uint64(2))
	require.Zero(t, s.Registrations, "all through buckets")
	p.end(t)
}

// TestWithdrawOwnUse: memory is not freed while a transfer of its owner uses it.
func TestWithdrawOwnUse(t *testing.T) {
	p := newPair(t)
	h := p.own(t, p.alone(), unit)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := p.set[1].Withdraw(ctx, p.id)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "transfers of this rank")
	_, n := p.nic[1].registered()
	require.Equal(t, 1, n)
	p.regs[1].Release(h)
	p.end(t)
}

// TestOwnUseWithinItsPart: buckets that the owner uses count against its own part, whoever else holds them, and no large bucket displaces
// what is registered for the sake of a small transfer.
func TestOwnUseWithinItsPart(t *testing.T) {
	p := newPair(t) // 4 MiB, of which 3 are promised to the peer
	const large = 512 << 10
	require.NoError(t, p.set[0].Fix(large))
	at := p.alone() + large - unit
	at -= (at + int(p.mem.Addr()%uint64(os.Getpagesize()))) % large
	if at < 0 {
		at += large
	}
	for i := range 3 {
		p.attach(t, at+i*large)
	}
	var holds []*regmgr.Hold
	for i := range 2 {
		holds = append(holds, p.own(t, at+i*large, large))
	}
	s := p.regs[1].Stats()
	require.EqualValues(t, 2*large, s.Joint, "all of its part")
	var h regmgr.Hold
	require.ErrorIs(t, p.regs[1].Acquire(&h, regmgr.Request{Mem: p.mem.Slice(at+2*large, large)}), regmgr.ErrCopy)
	for _, h := range holds {
		p.regs[1].Release(h)
	}
	small := p.own(t, at+2*large+4096, 4096)
	s = p.regs[1].Stats()
	require.EqualValues(t, 1, s.Registrations, "of a page, and one bucket had to go for it")
	require.EqualValues(t, large, s.Joint)
	p.regs[1].Release(small)
	p.regs[1].Release(p.own(t, at+2*large, large))
	require.EqualValues(t, 3, p.regs[1].Stats().Joined)
	p.trim()
	p.end(t)
}

// TestOwnUseAtRandom: whatever the two ranks do, no more is registered than may be, all of it is charged, once, the owner's part holds what it
// uses, and no bytes are registered by two buckets of a size.
func TestOwnUseAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		policies := []regmgr.Policy{regmgr.LeavePinned, regmgr.OnDemand}
		p := newPairOf(t, regmgr.Config{Policy: policies[seed%2], Bytes: 1 << (18 + seed%4)})
		rng := rand.New(rand.NewPCG(seed, 1))
		var holds []*regmgr.Hold
		for range 1000 {
			off := rng.IntN(exposed/4096-64) * 4096 / (1 << rng.IntN(6)) &^ 7
			switch k := rng.IntN(10); {
			case k < 4:
				h := new(regmgr.Hold)
				q := regmgr.Request{Mem: p.mem.Slice(off, 8<<rng.IntN(15))}
				if err := p.regs[1].Acquire(h, q); err != nil {
					require.ErrorIs(t, err, regmgr.ErrCopy)
					break
				}
				require.True(t, h.Region().Contains(q.Mem))
				p.registeredUnder(t, h, q.Mem)
				holds = append(holds, h)
			case k < 7 && len(holds) > 0:
				i := rng.IntN(len(holds))
				p.regs[1].Release(holds[i])
				holds = append(holds[:i], holds[i+1:]...)
			case k < 9:
				_, direct, _, err := p.set[0].Attach("get", 0, p.far, p.addr(off), 8, nil, true)
				require.NoError(t, err)
				if direct {
					p.release(0)
				}
			default:
				p.regs[1].Trim(rng.Int64N(1 << 17))
			}
			p.account(t)
		}
		for _, h := range holds {
			p.regs[1].Release(h)
		}
		p.account(t)
		p.trim()
		p.end(t)
	}
}

// registeredUnder fails the test unless the hold's key is that of a registration there is, and which has all of m.
func (p *pair) registeredUnder(t *testing.T, h *regmgr.Hold, m mem.Range) {
	n := p.nic[1]
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.live[h.LKey()>>32]
	require.True(t, ok && r.Contains(m))
}

// account compares what is registered with what is charged.
func (p *pair) account(t *testing.T) {
	bytes, n := p.nic[1].registered()
	s := p.regs[1].Stats()
	limit, _ := p.regs[1].Budget().Limits()
	require.Equal(t, [2]int64{int64(bytes), int64(n)}, [2]int64{s.Bytes, int64(s.Regions)})
	require.LessOrEqual(t, s.Bytes, limit)
	require.LessOrEqual(t, s.Bytes-s.Lent+s.Joint, limit-s.Promised)
	require.LessOrEqual(t, s.Joint, s.Lent)
	_, owner := p.set[1].Stats()
	seen := map[[2]uint64]bool{}
	p.nic[1].mu.Lock()
	defer p.nic[1].mu.Unlock()
	buckets := 0
	for _, l := range p.set[1].keys {
		at := [2]uint64{l.mem.Addr(), uint64(l.mem.Bytes)}
		require.False(t, seen[at], "a bucket is registered twice")
		seen[at] = true
		buckets++
	}
	require.GreaterOrEqual(t, owner.Pinned*p.set[1].Unit(), s.Lent)
	require.LessOrEqual(t, buckets, n)
}

// TestOwnUseConcurrently is for the race detector: goroutines of the owner, and its peer, use the same few buckets where not all have room.
func TestOwnUseConcurrently(t *testing.T) {
	p := newPairOf(t, regmgr.Config{Policy: regmgr.LeavePinned, Bytes: 512 << 10})
	p.nic[0].many, p.nic[1].many = true, true
	require.NoError(t, p.set[0].Fix(unit))
	at, rounds := p.alone(), 400
	if testing.Short() {
		rounds = 100
	}
	var all sync.WaitGroup
	for g := range 3 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 2))
			for range rounds {
				h, m := new(regmgr.Hold), p.mem.Slice(at+rng.IntN(20)*unit, unit>>rng.IntN(3))
				if p.regs[1].Acquire(h, regmgr.Request{Mem: m}) == nil {
					p.registeredUnder(t, h, m)
					p.regs[1].Release(h)
				}
				if rng.IntN(10) == 0 {
					p.regs[1].Trim(unit)
				}
			}
		})
	}
	for range rounds {
		_, direct, _, err := p.set[0].Attach("get", 0, p.far, p.addr(at+rand.IntN(20)*unit), 8, nil, true)
		require.NoError(t, err)
		if direct {
			p.release(0)
		}
	}
	all.Wait()
	require.LessOrEqual(t, p.nic[1].peak, 512<<10)
	p.account(t)
	p.trim()
	p.end(t)
}
