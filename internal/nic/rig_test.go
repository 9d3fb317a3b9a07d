package nic

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/am"
	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

const (
	exposed = 4096
	patient = 10 * time.Second // a condition that does not come true in that time never does
)

// listener is a Client that writes down what it is told. Its hooks may be nil.
type listener struct {
	landed  func(id int32)
	handled func()
	tell    func()

	mu       sync.Mutex
	ends     [Pieces]int // how often a piece was told to have landed
	letGo    [Pieces]int
	reported map[uint64]error
	answered map[uint64]string
	gaveUp   []uint64
	cause    error // of the last GaveUp
	advances atomic.Int64
	missed   atomic.Int64 // so many times Tell says that somebody was missed
}

func (l *listener) Landed(id int32) {
	if l.landed != nil {
		l.landed(id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends[id]++
}

func (l *listener) LetGoLocked(id int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.letGo[id]++
}

func (l *listener) Reported(cookie uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reported[cookie] = err
}

// Requests that the handler knows.
const (
	echo   = iota // sends the payload back
	refuse        // status 1
)

func (l *listener) Handle(r am.Request, out []byte) (int, uint8) {
	if r.Handler == refuse {
		return 0, 1
	}
	if l.handled != nil {
		l.handled()
	}
	return copy(out, r.Payload), 0
}

func (l *listener) Answered(r am.Reply, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered[r.Cookie] = string(r.Payload)
}

func (l *listener) GaveUp(_ int, cookies []uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gaveUp, l.cause = append(l.gaveUp, cookies...), err
}

func (l *listener) Arrived(*transport.Completion) bool { return false }

func (l *listener) Advance() bool { l.advances.Add(1); return false }

func (l *listener) Watchful() bool { return false }

func (l *listener) Tell() bool {
	if l.tell != nil {
		l.tell()
	}
	return l.missed.Add(-1) >= 0
}

// world is ranks with some exposed memory each. Nobody attends to their NICs: they make progress when a test polls or waits, so that
// what it has posted has not been reported before.
type world struct {
	n    []*NIC
	to   []*listener
	mem  []mem.Range
	rkey []uint64
}

// newWorld makes n ranks; rank 0's NIC is given to wrap, which may be nil.
func newWorld(t *testing.T, n int, c transporttest.FabricConfig, wrap func(transport.Domain) transport.Domain) *world {
	t.Helper()
	return newWorldOn(t, n, sched.Goroutine, c, wrap)
}

// newWorldOn is newWorld of ranks that wait by what on returns for so many.
func newWorldOn(t *testing.T, n int, on func(ranks int) *sched.Sched, c transporttest.FabricConfig, wrap func(transport.Domain) transport.Domain) *world {
	t.Helper()
	w := &world{}
	fabric := transporttest.NewFabric(n, c)
	for r := range n {
		s := on(n)
		d, err := fabric.Provider(r).Open(t.Context(), transport.Config{Rank: r, Size: n, Job: t.Name(), Secret: []byte(t.Name()), Sched: s})
		require.NoError(t, err)
		if r == 0 && wrap != nil {
			d = wrap(d)
		}
		l := &listener{reported: map[uint64]error{}, answered: map[uint64]string{}}
		nic, err := New(Config{Rank: r, Size: n, Name: "loopback", Domain: d, Sched: s, Peers: peers.New(n), Client: l})
		require.NoError(t, err)
		require.NoError(t, nic.Listen(0))
		m := mem.Of(make([]uint64, exposed/8))
		key, err := d.Register(m, transport.AllAccess)
		require.NoError(t, err)
		w.n, w.to, w.mem, w.rkey = append(w.n, nic), append(w.to, l), append(w.mem, m), append(w.rkey, key.RKey)
		t.Cleanup(func() {
			nic.unattended.Store(true)
			nic.Quit()
			require.NoError(t, d.Close())
		})
	}
	for _, nic := range w.n {
		for r, peer := range w.n {
			nic.Learn(r, peer.Domain.Address())
		}
	}
	return w
}

// write is the operation that writes a word of rank's memory; a test that wants it refused changes the key.
func (w *world) write(rank, at int) transport.Op {
	return transport.Op{Kind: transport.OpWrite, NSGE: 1, Flags: transport.FlagInline, RAddr: w.mem[rank].Addr() + uint64(at), RKey: w.rkey[rank]}
}

// fill puts v into piece id's buffer and has op send it.
func (w *world) fill(id int32, op *transport.Op, v uint64) {
	buf, key := w.n[0].Buffer(id, 8)
	buf.Word64(0).Store(v)
	op.SGE[0] = transport.SGE{Mem: buf, LKey: key}
}

// put writes v to a word of rank's memory by a piece of its own, to which something is lent.
func (w *world) put(t *testing.T, rank, at int, v uint64) int32 {
	t.Helper()
	id, err := w.n[0].Acquire("put", rank, false)
	require.NoError(t, err)
	op := w.write(rank, at)
	w.fill(id, &op, v)
	w.n[0].Lend(id)
	require.NoError(t, w.n[0].Post("put", id, op))
	return id
}

// read returns a word of rank's memory, by way of the NIC.
func (w *world) read(rank, at int) (uint64, error) {
	op := transport.Op{Kind: transport.OpRead, RAddr: w.mem[rank].Addr() + uint64(at), RKey: w.rkey[rank]}
	k, err := w.n[0].PostKept("get", rank, op, 8, false, true)
	if err != nil {
		return 0, err
	}
	return w.n[0].Take(k)
}

// until polls all NICs until cond holds.
func (w *world) until(t *testing.T, cond func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, n := range w.n {
			n.Progress()
		}
		return cond()
	}, patient, 100*time.Microsecond)
}

// attended has somebody attend to the NIC until stop is called.
func (n *NIC) attended() (stop func()) {
	var wg sync.WaitGroup
	wg.Go(n.attend)
	return func() {
		n.stop()
		n.nap.Set()
		n.Domain.Wake()
		wg.Wait()
	}
}

// serve has all but rank 0 poll until the test ends.
func (w *world) serve(t *testing.T) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, n := range w.n[1:] {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Microsecond):
					n.Progress()
				}
			}
		})
	}
	t.Cleanup(func() { close(stop); wg.Wait() })
}

// brittle is a NIC whose connections can be cut, and refused.
type brittle struct {
	transport.Domain
	mu    sync.Mutex
	last  transport.EP
	weak  int   // how many connections are cut as soon as they are made
	dead  error // what Connect says, if not nil
	posts []int // how many operations each Post has taken
}

func (b *brittle) Connect(ctx context.Context, peer int, addr []byte) (transport.EP, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dead != nil {
		return transport.EP{}, b.dead
	}
	ep, err := b.Domain.Connect(ctx, peer, addr)
	b.last = ep
	if err == nil && b.weak > 0 {
		b.weak--
		err = b.Domain.Disconnect(ep)
	}
	return ep, err
}

func (b *brittle) Post(ops []transport.Op) (int, error) {
	k, err := b.Domain.Post(ops)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.posts = append(b.posts, k)
	return k, err
}

// cut breaks the connection that was made last; what is made next is weak so many times, or refused for a reason.
func (b *brittle) cut(t *testing.T, weak int, dead error) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.weak, b.dead = weak, dead
	require.NoError(t, b.Domain.Disconnect(b.last))
}

// newBrittle is newWorld with a brittle NIC.
func newBrittle(t *testing.T, n int, c transporttest.FabricConfig) (*world, *brittle) {
	b := &brittle{}
	return newWorld(t, n, c, func(d transport.Domain) transport.Domain { b.Domain = d; return b }), b
}

// postLater has a piece's operation held back.
func (w *world) postLater(name string, id int32, op *transport.Op) error {
	w.n[0].table.Op(id)[0] = *op
	return w.n[0].PostLaidLater(name, id)
}
