package regmgr

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

func errorsIsCopy(err error) bool { return errors.Is(err, ErrCopy) }

// every calls f for each policy, and for the predictive one with a helper too: it predicts only with one.
func every(f func(name string, c Config)) {
	for p := range policies {
		f(p.String(), Config{Policy: p})
	}
	f("predictive with helper", Config{Policy: Predictive, Ahead: &Ahead{Poll: 20 * time.Microsecond}})
}

func TestNamesOfPolicies(t *testing.T) {
	for p := range policies {
		got, err := ParsePolicy(p.String())
		require.NoError(t, err)
		require.Equal(t, p, got)
		require.Contains(t, Policies(), p.String())
	}
	p, err := ParsePolicy("")
	require.NoError(t, err)
	require.Equal(t, LeavePinned, p)
}

func TestPlans(t *testing.T) {
	const k, mb = 1 << 10, 1 << 20
	whole := func(n int) Plan { return Plan{Register: true, Fragment: n, Depth: 1} }
	pipe := Plan{Register: true, Fragment: 512 * k, Depth: 3}
	for _, c := range []struct {
		p     Policy
		bytes int
		want  Plan
	}{
		{Bounce, 64 * mb, Plan{}},
		{LeavePinned, 0, Plan{}},
		{LeavePinned, 16*k - 1, Plan{}},
		{LeavePinned, 16 * k, whole(16 * k)},
		{OnDemand, 4 * mb, whole(4 * mb)},
		{LeavePinnedNoEvict, 4 * mb, whole(4 * mb)},
		{Predictive, 17 * k, whole(17 * k)},
		{Pipelined, mb - 1, Plan{}},
		{Pipelined, mb, pipe},
		{PipelinedLeavePinned, 5 * mb, pipe},
		{PipelinedLeavePinned, 512 * k, Plan{}},
	} {
		require.Equal(t, c.want, c.p.PlanFor(c.bytes, LeastRegistered), "%v %d", c.p, c.bytes)
	}
}

// transfer copies src to dst as the zero-copy path does, with a NIC that looks at the registrations: the bytes move only if
// both the source and the destination are registered, a fragment at a time, else they are copied.
func transfer(m *Manager, n *nic, dst, src mem.Range) (zeroCopy int, err error) {
	plan := m.Plan(src.Bytes)
	if !plan.Register {
		copy(dst.Data(), src.Data())
		return 0, nil
	}
	type flight struct{ from, to Hold }
	var flying []*flight
	land := func() {
		m.Release(&flying[0].from)
		m.Release(&flying[0].to)
		flying = flying[1:]
	}
	defer func() {
		for len(flying) > 0 {
			land()
		}
	}()
	for off := 0; off < src.Bytes; off += plan.Fragment {
		bytes := min(plan.Fragment, src.Bytes-off)
		from, to := src.Slice(off, bytes), dst.Slice(off, bytes)
		if len(flying) == plan.Depth {
			land()
		}
		f := new(flight)
		err := m.Acquire(&f.from, Request{Mem: from})
		if err == nil {
			if err = m.Acquire(&f.to, Request{Mem: to, Access: transport.LocalWrite}); err != nil {
				m.Release(&f.from)
			}
		}
		switch {
		case errorsIsCopy(err):
			copy(to.Data(), from.Data())
			continue
		case err != nil:
			return zeroCopy, err
		case !n.covers(f.from.LKey(), from, 0) || !n.covers(f.to.LKey(), to, transport.LocalWrite):
			return zeroCopy, errors.New("the NIC was given memory that is not registered")
		}
		copy(to.Data(), from.Data())
		zeroCopy += bytes
		flying = append(flying, f)
	}
	return zeroCopy, nil
}

// trouble is a way in which registrations fail.
type trouble struct {
	name    string
	budget  int64 // of the manager, in pages
	prepare func(n *nic)
	every   func(n *nic, i int) // before each transfer
}

func troubles() []trouble {
	fail := func(err error, at func(i int) bool) func(*nic) {
		return func(n *nic) {
			n.refuse = func(i int) error {
				if at(i) {
					return fmt.Errorf("register: %w", err)
				}
				return nil
			}
		}
	}
	return []trouble{
		{name: "plenty"},
		{name: "a budget of 16 pages", budget: 16},
		{name: "a NIC of 16 pages", prepare: func(n *nic) { n.limit = 16 * page }},
		{name: "refused mid-list, ENOMEM", prepare: fail(syscall.ENOMEM, func(i int) bool { return i%5 == 3 })},
		{name: "refused mid-list, EAGAIN", prepare: fail(syscall.EAGAIN, func(i int) bool { return i%7 > 4 })},
		{name: "refused always", prepare: fail(syscall.ENOMEM, func(int) bool { return true })},
		{name: "refused for no reason", prepare: fail(errors.New("broken firmware"), func(i int) bool { return i%2 == 0 })},
		{name: "limit lowered while running", prepare: func(n *nic) { n.limit = 2000 * page }, every: func(n *nic, i int) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.limit = int64(2000*page) >> min(i, 20)
			if i > transfers*2/3 {
				n.limit = 2000 * page // and raised again
			}
		}},
	}
}

const transfers = 30

// TestEveryPolicyInEveryTrouble: whatever is refused, what arrives is what was sent, or, under the policy that does not
// copy, there is an error that says what to do; nothing stays held; the account agrees with the NIC's.
func TestEveryPolicyInEveryTrouble(t *testing.T) {
	sizes := []int{100, 3 * page, 5*page + 17, 20 * page, 40*page + 1, 300*page + 1}
	pattern := make([]byte, 304*page)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(pattern)
	for _, tr := range troubles() {
		every(func(name string, c Config) {
			t.Run(tr.name+"/"+name, func(t *testing.T) {
				n := newNIC()
				if tr.prepare != nil {
					tr.prepare(n)
				}
				p := c.Policy
				c.Bytes, c.Threshold = tr.budget*page, 2*page
				m := managerOn(t, n, c)
				rng := rand.New(rand.NewPCG(7, uint64(p)))
				var bufs [4]mem.Range
				for i := range bufs {
					bufs[i] = heap(302)
				}
				zeroCopy, failed := 0, 0
				for i := range transfers {
					if tr.every != nil {
						tr.every(n, i)
					}
					size := sizes[rng.IntN(len(sizes))]
					from, to := rng.IntN(2), 2+rng.IntN(2)
					off := rng.IntN(2) * page
					src, dst := bufs[from].Slice(off, size), bufs[to].Slice(off, size)
					want := pattern[i : i+size]
					copy(src.Data(), want)
					z, err := transfer(m, n, dst, src)
					zeroCopy += z
					if err != nil {
						failed++
						require.Equal(t, LeavePinnedNoEvict, p, "%v", err)
						require.ErrorIs(t, err, ErrBudget)
						require.ErrorIs(t, err, transport.ErrLimit)
						require.ErrorContains(t, err, "PGAS_REG")
						continue
					}
					require.True(t, bytes.Equal(want, dst.Data()), "lost, of %d bytes", size)
				}
				s, u := m.Stats(), m.Budget().Usage()
				regions, bytes := n.count()
				if c.Ahead != nil { // it gives back what it has registered in vain, and may register again meanwhile
					require.Eventually(t, func() bool {
						s, u = m.Stats(), m.Budget().Usage()
						regions, bytes = n.count()
						return regions == 0 && u.Regions == 0 && s.Registrations == s.Deregistrations && m.stirring.Load() == 0
					}, 20*time.Second, time.Millisecond)
					require.NoError(t, m.ahead.helper.Err())
				}
				require.Equal(t, regions, u.Regions)
				require.Equal(t, bytes, u.Bytes)
				require.Equal(t, uint64(regions), s.Registrations-s.Deregistrations)
				if p == OnDemand || p == Pipelined || p == Predictive {
					require.Zero(t, regions, "nothing stays")
				}
				copies := s.CopiedBudget + s.CopiedRefused
				switch {
				case tr.name == "plenty":
					require.Zero(t, copies+uint64(failed))
					require.Equal(t, p != Bounce, zeroCopy > 0)
					require.NoError(t, m.Refusal())
				case p == Bounce:
					require.Zero(t, n.made)
				case p == LeavePinnedNoEvict:
					require.Positive(t, failed, "no copies: it must fail")
					require.Zero(t, copies+s.Evicted)
					require.Error(t, m.Refusal())
				default:
					require.Zero(t, failed)
					if tr.name == "refused always" || tr.name == "a budget of 16 pages" && p != Pipelined && p != PipelinedLeavePinned {
						require.Positive(t, copies, "counted")
					}
					if copies > 0 {
						require.ErrorIs(t, m.Refusal(), transport.ErrLimit, "reported")
					}
				}
			})
		})
	}
}

// TestRefusalIsNotAskedForEachTime: at a limit the NIC is not asked again for every transfer, but it is asked again.
func TestRefusalIsNotAskedForEachTime(t *testing.T) {
	n := newNIC()
	n.limit = 4 * page
	m := managerOn(t, n, Config{})
	first := m.Refusal()
	require.NoError(t, first)
	large := heap(8)
	for range 10 * probeEvery {
		require.ErrorIs(t, m.Acquire(new(Hold), Request{Mem: large}), ErrCopy)
	}
	require.LessOrEqual(t, n.made, 11)
	require.Equal(t, uint64(10*probeEvery), m.Stats().CopiedRefused)
	m.Release(acquire(t, m, heap(4), 0)) // what fits is still registered
	n.limit = 0
	require.Eventually(t, func() bool {
		h := new(Hold)
		if m.Acquire(h, Request{Mem: large}) != nil {
			return false
		}
		m.Release(h)
		return true
	}, 10e9, 1)
}

// TestRefusalIsForgotten: once the NIC has room again all that is used again and again is registered, although giving others up helps each request.
func TestRefusalIsForgotten(t *testing.T) {
	n := newNIC()
	n.limit = 4 * page
	m := managerOn(t, n, Config{})
	require.ErrorIs(t, m.Acquire(new(Hold), Request{Mem: heap(5)}), ErrCopy)
	n.limit = 0
	var bufs [8]mem.Range
	for i := range bufs {
		bufs[i] = heap(2)
	}
	before := 0
	for round := range 2 * probeEvery {
		if round == probeEvery {
			before = n.made
		}
		for _, b := range bufs {
			m.Release(acquire(t, m, b, 0))
		}
	}
	require.Equal(t, before, n.made, "registered anew though there is room")
}

// TestLimitIsNotAskedForEachTime: where giving others up helps the NIC is not asked in vain first, but for one request in probeEvery.
func TestLimitIsNotAskedForEachTime(t *testing.T) {
	n := newNIC()
	n.limit = 6 * page
	m := managerOn(t, n, Config{})
	var bufs [8]mem.Range
	for i := range bufs {
		bufs[i] = heap(2)
	}
	for range 2 * probeEvery {
		for _, b := range bufs {
			m.Release(acquire(t, m, b, 0))
		}
	}
	requests := 2 * probeEvery * len(bufs)
	require.LessOrEqual(t, m.Stats().Refused, uint64(requests/probeEvery+2))
	_, bytes := n.count()
	require.GreaterOrEqual(t, bytes, int64(4*page))
}

// TestImpossibleProblem: each buffer fits, all together do not. The policy that never gives up memory fails, the others
// copy nothing.
func TestImpossibleProblem(t *testing.T) {
	var bufs [8]mem.Range
	for i := range bufs {
		bufs[i] = heap(6)
	}
	every(func(name string, c Config) {
		p := c.Policy
		if p == Bounce || p == Pipelined || p == PipelinedLeavePinned {
			return // they copy such buffers anyway
		}
		n := newNIC()
		n.limit = 16 * page
		c.Bytes = 16 * page
		m := managerOn(t, n, c)
		var failure error
		for range 3 {
			for i := 0; i < len(bufs) && failure == nil; i += 2 {
				z, err := transfer(m, n, bufs[i+1], bufs[i])
				failure = err
				require.True(t, err != nil || z == bufs[i].Bytes, "%v copied", name)
			}
		}
		require.Equal(t, p == LeavePinnedNoEvict, failure != nil, "%v: %v", name, failure)
		if failure != nil {
			require.ErrorContains(t, failure, "needed 24576 bytes in 1 registration more")
		}
	})
}

// TestTooLargeIsSaid: the refusal of what exceeds the limit by itself says what was found and needed and what helps, with units; to give up others does not.
func TestTooLargeIsSaid(t *testing.T) {
	require.Equal(t, "no limit", limitText(0, 0))
	require.Equal(t, "limit 65536 bytes", limitText(65536, 0))
	require.Equal(t, "limit 16 registrations", limitText(0, 16))
	n := newNIC()
	m := managerOn(t, n, Config{Policy: LeavePinned, Bytes: 4 * page})
	buf := heap(6)
	_, err := transfer(m, n, heap(6), buf)
	require.NoError(t, err)
	refused := m.Refusal().Error()
	for _, words := range []string{
		fmt.Sprintf("registering %d bytes of", buf.Bytes), fmt.Sprintf("found 0 bytes in 0 registrations in use, limit %d bytes", 4*page),
		"in 1 registration more", "PGAS_REG_LIMIT and PGAS_MAX_PINNED (", " bytes or more) and ulimit -l (", " KiB or more)", "(the request alone exceeds the limit)",
	} {
		require.Contains(t, refused, words)
	}
	require.NotContains(t, refused, "PGAS_REG=leavepinned")
}

// TestPromiseIsSaid: what is kept for other ranks is part of why there is no room, and of what would be enough.
func TestPromiseIsSaid(t *testing.T) {
	const needed, kept, limit = 20, 48, 64
	n := newNIC()
	m := managerOn(t, n, Config{Policy: LeavePinned, Bytes: limit * page})
	m.Promise(kept*page, 3)
	require.True(t, m.Reserve(8*page, 1))
	_, err := transfer(m, n, heap(needed), heap(needed))
	require.NoError(t, err)
	refused := m.Refusal().Error()
	for _, words := range []string{
		fmt.Sprintf("found %d bytes in 1 registrations in use (%d bytes of them for other ranks), limit %d bytes, %d bytes of it kept for other ranks, needed",
			8*page, 8*page, limit*page, kept*page),
		fmt.Sprintf("PGAS_REG_LIMIT and PGAS_MAX_PINNED (%d bytes or more) and ulimit -l (%d KiB or more)", 80*page, 80*page/1024),
	} {
		require.Contains(t, refused, words)
	}
	m.Unreserve(8*page, 1)

	// With that limit, of which as large a part is kept, there is room.
	m = managerOn(t, n, Config{Policy: LeavePinned, Bytes: 80 * page})
	m.Promise(80*page/limit*kept, 3)
	m.Release(acquire(t, m, heap(needed), 0))
	require.EqualValues(t, 20*page, limitFor(20*page, 0, 0))
	require.EqualValues(t, 60*page, limitFor(20*page, 40*page, 40*page), "all of it is kept")
}

// TestFirstRefusalIsKept: later ones are counted, or are their callers' errors, and the report is about the first one.
func TestFirstRefusalIsKept(t *testing.T) {
	for _, p := range []Policy{LeavePinned, LeavePinnedNoEvict} {
		m := managerOn(t, newNIC(), Config{Policy: p, Bytes: 4 * page})
		for _, pages := range []int{6, 7} {
			require.Error(t, m.Acquire(new(Hold), Request{Mem: heap(pages)}))
		}
		require.ErrorContains(t, m.Refusal(), fmt.Sprintf("registering %d bytes", 6*page), p.String())
	}
}
