package superpipe

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// patience is how long a test waits for what must come.
const patience = 60 * time.Second

// rig is some ranks that have an origin and, where the NIC has a way, a target each.
type rig struct {
	t     *testing.T
	ranks []*rank
	kill  func(rank int)
}

type rank struct {
	r    *rig
	id   int
	d    transport.Domain
	o    *Origin
	t    *Target
	eps  []transport.EP
	down atomic.Bool // the test has ended it
	stop atomic.Bool
	wg   sync.WaitGroup
	buf  mem.Range // receive buffers
	key  transport.Region
}

const (
	originCookies = 1 << 48
	targetCookies = 2 << 48
)

// setup is what a test may change of a rig.
type setup struct {
	fabric transporttest.FabricConfig
	faults transporttest.FaultPlan
	config Config
	open   func(t *testing.T, n int) (ds []transport.Domain, kill func(int)) // instead of a fabric
	nic    func(rank int, d transport.Domain) NIC
}

func openFabric(c transporttest.FabricConfig) func(t *testing.T, n int) ([]transport.Domain, func(int)) {
	return func(t *testing.T, n int) ([]transport.Domain, func(int)) {
		f := transporttest.NewFabric(n, c)
		ds := make([]transport.Domain, n)
		for r := range ds {
			d, err := f.Provider(r).Open(t.Context(), transport.Config{Rank: r, Size: n, Job: "test"})
			require.NoError(t, err)
			ds[r] = d
		}
		return ds, f.Kill
	}
}

// small slots make many chunks of little data.
func smallSlots() Config { return Config{SlotBytes: 16 << 10, Slots: 6, Leases: 2} }

func newRig(t *testing.T, n int, s setup) *rig {
	if s.open == nil {
		s.open = openFabric(s.fabric)
	}
	if s.nic == nil {
		s.nic = func(_ int, d transport.Domain) NIC { return d }
	}
	ds, kill := s.open(t, n)
	r := &rig{t: t}
	for i, d := range ds {
		if s.faults != (transporttest.FaultPlan{}) {
			d = transporttest.Faulty(d, s.faults)
		}
		r.ranks = append(r.ranks, &rank{r: r, id: i, d: d})
	}
	r.kill = func(i int) {
		r.ranks[i].down.Store(true)
		kill(i)
	}
	for i, k := range r.ranks {
		for j, other := range r.ranks {
			ep, err := k.d.Connect(t.Context(), j, other.d.Address())
			require.NoError(t, err)
			k.eps = append(k.eps, ep)
		}
		c := s.config
		c.NIC, c.Cookies = s.nic(i, k.d), originCookies
		var err error
		k.o, err = NewOrigin(c)
		require.NoError(t, err)
		c.Cookies = targetCookies
		if k.o.Way() == WayNone {
			continue
		}
		k.t, err = NewTarget(c)
		require.NoError(t, err)
		k.receive()
	}
	for _, k := range r.ranks {
		k.wg.Go(k.drive)
	}
	t.Cleanup(func() {
		for _, k := range r.ranks {
			k.stop.Store(true)
			k.wg.Wait()
			if !k.down.Load() {
				require.NoError(t, k.d.Close())
			}
		}
	})
	return r
}

// receive posts the buffers that writes with immediate use up.
func (k *rank) receive() {
	n := k.t.Immediates()
	if n == 0 {
		return
	}
	k.buf = mem.Of(make([]uint64, n))
	var err error
	k.key, err = k.d.Register(k.buf, transport.LocalWrite)
	require.NoError(k.r.t, err)
	for i := range n {
		k.repost(uint64(i))
	}
}

func (k *rank) repost(cookie uint64) {
	sge := transport.SGE{Mem: k.buf.Slice(int(cookie)*8, 8), LKey: k.key.LKey}
	n, err := k.d.PostRecv([]transport.Recv{{Buf: sge, Cookie: cookie}})
	if !k.down.Load() && (n != 1 || err != nil) {
		k.r.t.Errorf("post receive: %d, %v", n, err)
	}
}

// drive polls, as progress of the layer above does.
func (k *rank) drive() {
	var cq [16]transport.Completion
	idle := 0
	for !k.stop.Load() && !k.down.Load() {
		n, err := k.d.Poll(cq[:])
		if err != nil {
			return
		}
		for i := range cq[:n] {
			c := &cq[i]
			switch {
			case k.o.Completed(c):
			case k.t != nil && k.t.Completed(c):
			case c.Kind == transport.OpPeerDown:
				k.o.Lost(int(c.EP.Index), transport.ErrPeerGone)
				if k.t != nil {
					k.t.Lost(int(c.EP.Index))
				}
			case k.t != nil && k.t.Arrived(c):
				k.repost(c.Cookie)
			}
		}
		moved := k.o.Progress()
		if k.t != nil && k.t.Progress() {
			moved = true
		}
		if idle++; n > 0 || moved {
			idle = 0
		} else {
			rest(idle)
		}
	}
}

// rest is the nth pause of a wait; soon it leaves the processor to those that are waited for.
func rest(n int) {
	if n < 50 {
		runtime.Gosched()
	} else {
		time.Sleep(50 * time.Microsecond)
	}
}

// until waits for a condition.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for began, n := time.Now(), 0; !cond(); n++ {
		if time.Since(began) > patience {
			require.Fail(t, "never came: "+what)
		}
		rest(n)
	}
}

// begin starts a transfer, waiting for a pipe.
func (k *rank) begin(tr Transfer) *Pipe {
	k.r.t.Helper()
	for {
		p, ok, err := k.o.Begin(tr)
		require.NoError(k.r.t, err)
		if ok {
			return p
		}
		runtime.Gosched()
	}
}

// rendezvous has target b lease workspace to pipe p of rank k, over the wire's encoding.
func (k *rank) rendezvous(p *Pipe, b *rank, dst mem.Range) Grant {
	k.r.t.Helper()
	o, _, err := ParseOffer(p.Offer().Append(nil))
	require.NoError(k.r.t, err)
	var g Grant
	until(k.r.t, "a lease", func() (ok bool) {
		g, ok = b.t.Lease(k.id, b.eps[k.id], o, dst)
		return ok
	})
	g, _, err = ParseGrant(g.Append(nil))
	require.NoError(k.r.t, err)
	return g
}

// finish waits for the end of a pipe and returns its error.
func finish(t *testing.T, p *Pipe) error {
	t.Helper()
	until(t, "the end of a transfer", func() bool {
		p.Step()
		return p.Done()
	})
	return p.Err()
}

// guarded is memory with a margin that nobody may touch.
type guarded struct{ all, in mem.Range }

const margin = 64

// guard returns n bytes between margins, at an offset that is no multiple of anything.
func guard(n, shift int) guarded {
	all := mem.Of(make([]uint64, (n+shift+2*margin+15)/8))
	for i := range all.Data() {
		all.Data()[i] = 0xa5
	}
	return guarded{all, all.Slice(margin+shift, n)}
}

func (g guarded) check(t *testing.T, want []byte, what string, args ...any) {
	t.Helper()
	require.True(t, bytes.Equal(want, g.in.Data()), append([]any{"wrong bytes: " + what}, args...)...)
	before := int(g.in.Addr() - g.all.Addr())
	for i, b := range g.all.Data() {
		if (i < before || i >= before+g.in.Bytes) && b != 0xa5 {
			require.Fail(t, "byte outside was written", append([]any{what}, args...)...)
		}
	}
}

// payloads of n bytes: random, zero, and full of the flags that the next transfers would use.
func payload(kind, n int, rng *rand.Rand) []byte {
	b := make([]byte, n)
	switch kind % 3 {
	case 0:
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
	case 1:
		generation := 1 + rng.Uint64N(8)
		for i := 0; i+8 <= n; i += 8 {
			mem.Of(b).Slice(i, 8).SetBits(flag(generation, i/Block+rng.IntN(2), rng.Uint64N(1<<markBits)))
		}
	}
	return b
}
