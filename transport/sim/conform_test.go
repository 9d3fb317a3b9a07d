package sim

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// The conformance suite runs its ranks on ordinary goroutines, which wait for each other by channels and real sleeps;
// in virtual time that would stop the world. So it is given the real NIC in another frame: every call is made under
// one lock, and a pump, a goroutine beside them, fires the fabric's actions one by one as fast as it can. Only Wait,
// which parks coroutines, is the frame's own. What virtual time adds is tested by the tests of package test/sim.

// frame is the lock, and the pump.
type frame struct {
	mu   sync.Mutex
	m    *sched.Sim
	f    *Fabric
	open int
	news sync.Cond // the pump has fired something, or a call has changed something
}

type framed struct {
	*domain
	fr *frame
}

func openFramed(t *testing.T, n int, c Config, seed uint64) []transport.Domain {
	fr := &frame{m: sched.NewSim(seed), open: n}
	fr.news.L = &fr.mu
	fr.f = New(fr.m, n, c)
	ds := make([]transport.Domain, n)
	for r := range ds {
		d, err := fr.f.Provider(r).Open(t.Context(), transport.Config{Rank: r, Size: n, Sched: fr.m.Rank()})
		require.NoError(t, err)
		ds[r] = framed{d.(*domain), fr}
	}
	go fr.pump()
	return ds
}

func (fr *frame) pump() {
	fr.mu.Lock()
	defer fr.mu.Unlock()
	for fr.open > 0 {
		if fr.m.Advance() {
			fr.news.Broadcast()
			fr.mu.Unlock()
			runtime.Gosched()
			fr.mu.Lock()
			continue
		}
		fr.news.Wait()
	}
}

// Caps says all but one thing: a piece of a payload lands at one moment of virtual time, but a goroutine that polls its
// last word may see the copy under way.
func (d framed) Caps() transport.Caps {
	c := d.domain.Caps()
	c.InOrderData = false
	return c
}

// do makes a call under the lock.
func (d framed) do(f func()) {
	d.fr.mu.Lock()
	defer d.fr.mu.Unlock()
	f()
	d.fr.news.Broadcast()
}

func (d framed) Connect(ctx context.Context, peer int, addr []byte) (ep transport.EP, err error) {
	d.do(func() { ep, err = d.domain.Connect(ctx, peer, addr) })
	return ep, err
}

func (d framed) Disconnect(ep transport.EP) (err error) {
	d.do(func() { err = d.domain.Disconnect(ep) })
	return err
}

func (d framed) Register(r mem.Range, a transport.Access) (reg transport.Region, err error) {
	d.do(func() { reg, err = d.domain.Register(r, a) })
	return reg, err
}

func (d framed) Deregister(r transport.Region) (err error) {
	d.do(func() { err = d.domain.Deregister(r) })
	return err
}

func (d framed) Post(ops []transport.Op) (n int, err error) {
	d.do(func() { n, err = d.domain.Post(ops) })
	return n, err
}

func (d framed) PostRecv(bufs []transport.Recv) (n int, err error) {
	d.do(func() { n, err = d.domain.PostRecv(bufs) })
	return n, err
}

func (d framed) Poll(cq []transport.Completion) (n int, err error) {
	d.fr.mu.Lock()
	n, err = d.domain.Poll(cq)
	d.fr.mu.Unlock()
	if n == 0 {
		runtime.Gosched()
	}
	return n, err
}

func (d framed) Wait(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { d.do(func() {}) })()
	d.fr.mu.Lock()
	defer d.fr.mu.Unlock()
	for {
		switch {
		case d.closed:
			return errClosed
		case d.woken, d.cq.completions > 0:
			d.woken = false
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		d.fr.news.Wait()
	}
}

func (d framed) Wake() { d.do(d.domain.Wake) }

func (d framed) Close() (err error) {
	d.do(func() {
		if err = d.domain.Close(); err == nil {
			d.fr.open--
		}
	})
	return err
}

func killFramed(_ *testing.T, td transport.Domain) {
	d := td.(framed)
	d.do(func() {
		if !d.closed {
			d.fr.f.Kill(d.rank)
			d.fr.open--
		}
	})
}

func TestConforms(t *testing.T) {
	for name, c := range map[string]Config{
		"modern":    {Model: Modern()},
		"free":      {MaxInline: -1},
		"delayed":   {Model: Graphene(), RanksPerNode: 2, Faults: Faults{Delay: 50 * time.Microsecond}},
		"reordered": {Model: Modern(), Faults: Faults{Delay: 5 * time.Microsecond, Reorder: true}},
		"small": {
			Model: Modern(), MaxPost: 4, MaxRecv: 16, MaxInline: 8, MaxMessage: 1 << 12, MaxRegions: 40, MaxPinned: 8 << 20,
		},
	} {
		t.Run(name, func(t *testing.T) {
			open := func(t *testing.T, n int) []transport.Domain { return openFramed(t, n, c, 1) }
			opt := transporttest.Options{Kill: killFramed, FailureTimeout: 5 * time.Second, Rounds: 200, Ops: 400}
			if name == "modern" && !testing.Short() {
				opt.Rounds, opt.Ops = 1000, 800
			}
			transporttest.Run(t, open, opt)
		})
	}
}
