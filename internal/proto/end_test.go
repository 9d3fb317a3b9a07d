package proto

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/am"
	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/auto"
	"gopgas/transport/transporttest"
)

// realVariable names a NIC of package auto over which these tests run instead of the loop-back NIC.
const realVariable = "PGAS_TEST_PATHS"

// meeting is an Exchanger among goroutines.
type meeting struct {
	mu    sync.Mutex
	all   sync.Cond
	round int
	cards [][]byte
	last  [][]byte
	n     int
}

func newMeeting(n int) *meeting {
	m := &meeting{cards: make([][]byte, n)}
	m.all.L = &m.mu
	return m
}

type seat struct {
	m    *meeting
	rank int
}

func (s seat) Exchange(_ context.Context, card []byte) ([][]byte, error) {
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cards[s.rank] = card
	if m.n++; m.n == len(m.cards) {
		m.last, m.cards, m.n = m.cards, make([][]byte, len(m.cards)), 0
		m.round++
		m.all.Broadcast()
		return m.last, nil
	}
	for round := m.round; m.round == round; {
		m.all.Wait()
	}
	return m.last, nil
}

// team is the engines of ranks that share a fabric, each with memory exposed to all.
type team struct {
	fabric *transporttest.Fabric
	e      []*Engine
	of     [][]Remote
	mem    []mem.Range
	xp     []*Exposure
}

// newTeam makes n ranks with 64 KiB each; rank 0's NIC is given to wrap.
func newTeam(t *testing.T, n int, c transporttest.FabricConfig, wrap func(transport.Domain) transport.Domain) *team {
	t.Helper()
	return newTeamOf(t, n, 1<<16, c, wrap)
}

// newTeamOf is newTeam with bytes of memory each.
func newTeamOf(t testing.TB, n, bytes int, c transporttest.FabricConfig, wrap func(transport.Domain) transport.Domain) *team {
	t.Helper()
	return newTeamWith(t, n, bytes, c, wrap, func(*Config) {})
}

// newTeamWith is newTeamOf with settings that change changes.
func newTeamWith(t testing.TB, n, bytes int, c transporttest.FabricConfig, wrap func(transport.Domain) transport.Domain, change func(*Config)) *team {
	t.Helper()
	tm := &team{
		fabric: transporttest.NewFabric(n, c), e: make([]*Engine, n), of: make([][]Remote, n), mem: make([]mem.Range, n),
		xp: make([]*Exposure, n),
	}
	domains := make([]transport.Domain, n)
	for r := range n {
		provider := tm.fabric.Provider(r)
		if real := os.Getenv(realVariable); real != "" {
			var err error
			provider, err = auto.Provider(real, auto.Config{})
			require.NoError(t, err)
		}
		d, err := provider.Open(t.Context(), transport.Config{
			Rank: r, Size: n, Job: t.Name(), Secret: []byte(t.Name()), Sched: sched.Goroutine(n),
		})
		require.NoError(t, err)
		if r == 0 && wrap != nil {
			d = wrap(d)
		}
		domains[r] = d
	}
	m := newMeeting(n)
	var wg sync.WaitGroup
	errs := make([]error, n)
	for r := range n {
		wg.Go(func() {
			errs[r] = func() error {
				config := Config{
					Rank: r, Size: n, Sched: sched.Goroutine(n), Peers: peers.New(n), NICName: "loopback", Nodes: make([]int, n),
					OpenNIC: func(context.Context) (transport.Domain, error) { return domains[r], nil },
				}
				change(&config)
				e := New(config)
				ranks := make([]int, n)
				for i := range ranks {
					ranks[i] = i
				}
				xp, err := e.Allocate(t.Context(), seat{m, r}, ranks, bytes)
				if err != nil {
					return err
				}
				tm.e[r], tm.of[r], tm.mem[r], tm.xp[r] = e, xp.Of, xp.Local, xp
				if config.Registration.Idle.Cores == 0 { // tests wait for what is measured; those that are about the rests say how many cores there are
					e.HastenMeasuring()
				}
				return nil
			}()
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	t.Cleanup(func() {
		for _, e := range tm.e {
			e.Abandon()
		}
	})
	return tm
}

// cutting breaks the connections of a domain at will, and its words explain failures.
type cutting struct {
	transport.Domain
	mu   sync.Mutex
	last map[int]transport.EP
	dead error // what Connect says, if not nil
	weak int   // how many connections will be cut when they are made
}

func newCutting(d transport.Domain) *cutting {
	return &cutting{Domain: d, last: map[int]transport.EP{}}
}

func (c *cutting) Connect(ctx context.Context, peer int, addr []byte) (transport.EP, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil {
		return transport.EP{}, c.dead
	}
	ep, err := c.Domain.Connect(ctx, peer, addr)
	if err == nil {
		c.last[peer] = ep
	}
	if err == nil && c.weak > 0 {
		c.weak--
		err = c.Domain.Disconnect(ep)
	}
	return ep, err
}

func (c *cutting) cut(peer int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Domain.Disconnect(c.last[peer])
}

func (c *cutting) Explain(k transport.Completion) error {
	return fmt.Errorf("in the device's words, kind %d", k.Kind)
}

// TestMend breaks a connection over and over under puts, gets, atomics and requests: all of it is done, in order, and
// each atomic once.
func TestMend(t *testing.T) {
	kinds := map[string]transporttest.FabricConfig{
		"roomy": {}, "late": {Jitter: 20 * time.Microsecond, Seed: 1}, "narrow": {MaxPost: 3}, "not the CPU's": {NotCPU: true},
	}
	if real := os.Getenv(realVariable); real != "" {
		kinds = map[string]transporttest.FabricConfig{real: {}}
	}
	for name, c := range kinds {
		t.Run(name, func(t *testing.T) {
			var cutter *cutting
			tm := newTeam(t, 3, c, func(d transport.Domain) transport.Domain { cutter = newCutting(d); return cutter })
			e, to := tm.e[0], &tm.of[0][1]
			word := [1]uint64{}
			sum := uint64(0)
			for i := range 600 {
				word[0] = uint64(i + 1)
				_, err := e.PutNB(to, 8*(i%100), mem.Of(word[:]))
				require.NoError(t, err)
				require.NoError(t, e.Store64(to, 8*100, uint64(i+1)), "after the put")
				if i%7 == 0 {
					require.NoError(t, cutter.cut(1))
				}
				seen, err := e.Load64(to, 8*100)
				require.NoError(t, err)
				require.EqualValues(t, i+1, seen)
				got := [1]uint64{}
				require.NoError(t, e.Get(to, 8*(i%100), mem.Of(got[:])))
				require.EqualValues(t, i+1, got[0])
				if i%11 == 0 {
					require.NoError(t, cutter.cut(1))
				}
				// Done by the target's CPU where the NIC's atomics are the CPU's too: a request is never lost or doubled.
				_, err = e.Atomic(atom.Xor, atom.Word64(), to, 8*101, 1<<(i%64), 0)
				require.NoError(t, err)
				sum ^= 1 << (i % 64)
			}
			require.NoError(t, e.Flush(to))
			last, err := e.Load64(to, 8*101)
			require.NoError(t, err)
			require.Equal(t, sum, last)
			require.NoError(t, e.Put(&tm.of[0][2], 0, mem.Of(word[:])))
			require.NoError(t, e.Quiet())
		})
	}
}

// TestMostTries: what meets breaks as often as N4 says is done, and one break more fails it.
func TestMostTries(t *testing.T) {
	for weak := range am.MostTries + 2 {
		t.Run(fmt.Sprint(weak), func(t *testing.T) {
			var cutter *cutting
			tm := newTeam(t, 2, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { cutter = newCutting(d); return cutter })
			e, to := tm.e[0], &tm.of[0][1]
			word, got := [1]uint64{1}, [1]uint64{}
			require.NoError(t, e.Put(to, 0, mem.Of(word[:])))
			require.NoError(t, e.Flush(to))
			for name, op := range map[string]func() error{
				"put": func() error { return errors.Join(e.Put(to, 8, mem.Of(word[:])), e.Flush(to)) },
				"get": func() error { return e.Get(to, 0, mem.Of(got[:])) },
			} {
				cutter.mu.Lock()
				cutter.weak = weak
				cutter.mu.Unlock()
				require.NoError(t, cutter.cut(1))
				err := op() // on the connection that is cut, and then on the weak ones
				if weak < am.MostTries {
					require.NoError(t, err, name)
				} else {
					require.ErrorIs(t, err, nic.ErrConnectionLost, name)
				}
				cutter.mu.Lock()
				cutter.weak = 0
				cutter.mu.Unlock()
				require.NoError(t, op(), "%s, afterwards", name)
			}
		})
	}
}

// TestInDoubt: an atomic of which nobody knows whether it was done is not done again, and its error says so in the
// device's words. What comes after it finds a connection.
func TestInDoubt(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 3
	}
	for at := 1; at < 40; at += step {
		var cutter *cutting
		tm := newTeam(t, 2, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain {
			cutter = newCutting(transporttest.Faulty(d, transporttest.FaultPlan{BreakAt: at}))
			return cutter
		})
		e, to := tm.e[0], &tm.of[0][1]
		done, doubt := uint64(0), uint64(0)
		for i := range 40 {
			_, err := e.Atomic(atom.Sum, atom.Word64(), to, 0, 1, 0)
			if err == nil {
				done++
				continue
			}
			doubt++
			require.ErrorIs(t, err, nic.ErrConnectionLost, "atomic %d", i)
			require.ErrorContains(t, err, "in the device's words")
			var oe *transport.OpError
			require.ErrorAs(t, err, &oe)
			require.Equal(t, 1, oe.Rank)
		}
		require.EqualValues(t, 1, doubt)
		sum, err := e.Load64(to, 0)
		require.NoError(t, err)
		require.GreaterOrEqual(t, sum, done)
		require.LessOrEqual(t, sum, done+doubt)
	}
}

// TestRefusedAlone: a put that the target refuses costs those behind it nothing, and it is not tried again.
func TestRefusedAlone(t *testing.T) {
	tm := newTeam(t, 2, transporttest.FabricConfig{}, nil)
	e := tm.e[0]
	bad, good := tm.of[0][1], tm.of[0][1]
	bad.rkey++
	word := [1]uint64{7}
	require.NoError(t, e.Put(&bad, 0, mem.Of(word[:])))
	for i := range 50 {
		require.NoError(t, e.Put(&good, 8+8*i, mem.Of(word[:])))
	}
	require.ErrorIs(t, e.Flush(&good), nic.ErrRefused)
	require.NoError(t, e.Flush(&good))
	for i := range 50 {
		v, err := e.Load64(&good, 8+8*i)
		require.NoError(t, err)
		require.EqualValues(t, 7, v)
	}
	// The other side's operations go on too.
	require.NoError(t, tm.e[1].Put(&tm.of[1][0], 0, mem.Of(word[:])))
	require.NoError(t, tm.e[1].Flush(&tm.of[1][0]))
}

// TestChecksBeforePosting: what the NICs would answer by breaking the connection is not posted.
func TestChecksBeforePosting(t *testing.T) {
	tm := newTeam(t, 2, transporttest.FabricConfig{}, nil)
	e, to := tm.e[0], tm.of[0][1]
	word := [2]uint64{}
	for _, off := range []int{-8, 1<<16 - 8, 1 << 20} {
		require.ErrorIs(t, e.Put(&to, off, mem.Of(word[:])), errBounds, "put at %d", off)
		require.ErrorIs(t, e.Get(&to, off, mem.Of(word[:])), errBounds, "get at %d", off)
		_, err := e.GetNB(&to, off, mem.Of(word[:]))
		require.ErrorIs(t, err, errBounds, "get at %d", off)
		require.ErrorIs(t, e.Accumulate(atom.Xor, atom.Word64(), &to, off, mem.Of(word[:])), errBounds, "accumulate at %d", off)
	}
	for _, off := range []int{-8, 1 << 16} {
		_, err := e.Atomic(atom.Sum, atom.Word64(), &to, off, 1, 0)
		require.ErrorIs(t, err, errBounds, "atomic at %d", off)
	}
	_, err := e.Atomic(atom.Sum, atom.Word64(), &to, 4, 1, 0)
	require.ErrorIs(t, err, errAlign)
	for _, narrow := range []atom.Elem{{Kind: reflect.Float64, Bytes: 8}, {Kind: reflect.Uint32, Bytes: 4}, {Kind: reflect.Int16, Bytes: 2}} {
		off, old := 8+narrow.Bytes/2, mem.Of(word[:]).Slice(0, narrow.Bytes)
		one := mem.Of(make([]uint64, 1)).Slice(0, narrow.Bytes)
		_, err := e.Atomic(atom.Replace, narrow, &to, off, 1, 0)
		require.ErrorIs(t, err, errAlign, "atomic")
		_, err = e.AtomicNB(atom.Replace, narrow, &to, off, 1, 0, old)
		require.ErrorIs(t, err, errAlign, "atomic begun")
		require.ErrorIs(t, e.Accumulate(atom.Sum, narrow, &to, off, one), errAlign, "accumulate")
		require.ErrorIs(t, e.GetAccumulate(atom.Sum, narrow, &to, off, one, old), errAlign, "get-accumulate")
	}
	unkeyed := to
	unkeyed.keyed = false
	require.ErrorIs(t, e.Put(&unkeyed, 0, mem.Of(word[:])), errNoKey)
	require.NoError(t, e.Flush(&to), "nothing was posted")
}

// TestUnreachable: what waits for a connection that cannot be made fails with its reason, and works when it can be made.
func TestUnreachable(t *testing.T) {
	var cutter *cutting
	tm := newTeam(t, 2, transporttest.FabricConfig{Jitter: time.Millisecond}, func(d transport.Domain) transport.Domain {
		cutter = newCutting(d)
		return cutter
	})
	e, to := tm.e[0], &tm.of[0][1]
	word := [1]uint64{1}
	require.NoError(t, e.Put(to, 0, mem.Of(word[:])))
	require.NoError(t, e.Flush(to))
	refusal := errors.New("the cable is out")
	set := func(err error) {
		cutter.mu.Lock()
		defer cutter.mu.Unlock()
		cutter.dead = err
	}
	set(refusal)
	require.NoError(t, cutter.cut(1))
	var first error
	for range 20 {
		first = errors.Join(first, e.Put(to, 0, mem.Of(word[:])))
	}
	require.ErrorIs(t, errors.Join(first, e.Flush(to)), refusal)
	_ = e.Flush(to) // of the others, if they were too quick for it
	_, err := e.Atomic(atom.Xor, atom.Word64(), to, 0, 1, 0)
	require.ErrorIs(t, err, refusal)
	require.NoError(t, e.Peers.Check(1), "nobody has called it gone")
	set(nil)
	require.NoError(t, e.Put(to, 0, mem.Of(word[:])))
	require.NoError(t, e.Flush(to))
	set(transport.ErrPeerGone)
	require.NoError(t, cutter.cut(1))
	require.ErrorIs(t, errors.Join(e.Put(to, 0, mem.Of(word[:])), e.Flush(to)), transport.ErrPeerGone)
	require.ErrorIs(t, e.Peers.Check(1), transport.ErrPeerGone)
}
