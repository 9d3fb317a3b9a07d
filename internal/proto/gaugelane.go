package proto

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/prices"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
)

// gaugeLane is the NIC as a measurement sees it. far is the half of its memory that transfers are made with.
type gaugeLane struct {
	nic.Lane
	n   *device
	far *Remote
}

// gaugeCookie marks the operations of a measurement.
const gaugeCookie = 1 << 62

// Post implements superpipe.NIC: it marks the operations as a measurement's.
func (l gaugeLane) Post(ops []transport.Op) (int, error) {
	for i := range ops {
		ops[i].Cookie = gaugeCookie
	}
	g := &l.n.gauge
	g.flying.Add(int64(len(ops)))
	k, err := l.Lane.Post(ops)
	g.flying.Add(int64(k - len(ops)))
	return k, err
}

// Register implements superpipe.NIC. It is not the program's, but it has the program's idle registrations make room: by the time that is measured
// they may have filled what the NIC may register.
func (l gaugeLane) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	return l.n.registerBeside(l.n.Domain, r, a)
}

// reset forgets the operations of an earlier measurement, which are over.
func (g *gauge) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done, g.failed = 0, nil
}

// reported notes the end of an operation of the measurement.
func (g *gauge) reported(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying.Add(-1)
	g.done++
	if g.failed == nil {
		g.failed = err
	}
}

// Poll implements prices.NIC, as all that follows.
func (l gaugeLane) Poll(cq []transport.Completion) (int, error) {
	l.n.Progress()
	g := &l.n.gauge
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.failed != nil:
		return 0, g.failed
	case l.n.Closed():
		return 0, nic.ErrOwnEnd
	}
	k := min(g.done, len(cq))
	clear(cq[:k])
	g.done -= k
	return k, nil
}

func (l gaugeLane) Flying() bool { return l.n.gauge.flying.Load() != 0 }

func (l gaugeLane) Connect(rank int) error {
	return l.n.NIC.Connect("measure", rank)
}

func (l gaugeLane) Alone() (done func()) {
	return l.n.NIC.Alone()
}

func (l gaugeLane) With(far mem.Range, key transport.Region) prices.NIC {
	there := farOf(prices.Loan{Rank: l.far.Rank, Addr: far.Addr(), Key: key.RKey, Bytes: far.Bytes})
	l.far = &there
	return l
}

// farOf is a loan as transfers see it, which are not counted.
func farOf(g prices.Loan) Remote {
	return Remote{Rank: g.Rank, Bytes: g.Bytes, raddr: g.Addr, rkey: g.Key, keyed: true, room: g.Bytes, measured: true}
}

func (l gaugeLane) Cut(m superpipe.Model) { l.n.flights.Calibrate(m) }

// journey is a transfer of a measurement.
func (l gaugeLane) journey(get bool, p Path) journey {
	t := journey{name: "measure", kind: transport.OpWrite, r: l.far, path: p}
	if get {
		t.kind = transport.OpRead
	}
	return t
}

func (l gaugeLane) Slotted(get bool, user mem.Range) error {
	t := l.journey(get, PathBounce)
	if err := l.slotted(&t, user); err != nil || get {
		return err
	}
	return l.land()
}

func (l gaugeLane) slotted(t *journey, user mem.Range) error {
	if t.kind == transport.OpRead {
		return l.n.get(t.r, t.off, user)
	}
	return l.n.put(t.name, t.r, t.off, user)
}

func (l gaugeLane) Piped(get bool, user mem.Range) error {
	t := l.journey(get, PathPipe)
	if err := l.n.piped(&t, user, selector.Pipe); err != nil {
		return err
	}
	return l.land()
}

// land waits until all that this rank has sent there has arrived.
func (l gaugeLane) land() error { return l.N.Land(context.Background(), "flush", l.far.Rank) }

func (l gaugeLane) Past(get bool, user mem.Range, cache *regmgr.Manager) error {
	t := l.journey(get, PathBypass)
	return l.past(&t, user, cache)
}

// past is a transfer as single makes it, but for a cache of its own, so that nothing is counted as the program's.
func (l gaugeLane) past(t *journey, user mem.Range, cache *regmgr.Manager) error {
	n := l.n
	if err := n.reach(t.name, t.r, t.off, user.Bytes); err != nil {
		return err
	}
	h, id, err := n.BeginOne(t.name, t.r.Rank)
	if err != nil {
		return err
	}
	var hold regmgr.Hold
	if err := cache.Acquire(&hold, regmgr.Request{Mem: user, Access: t.rights()}); err != nil {
		n.Abandon(id)
		n.PartDone(h, nil)
		return err
	}
	defer cache.Release(&hold)
	op := transport.Op{Kind: t.kind, NSGE: 1, RAddr: t.r.raddr + uint64(t.off), RKey: t.r.rkey}
	op.SGE[0] = transport.SGE{Mem: user, LKey: hold.LKey()}
	if err := n.PostAwaited(t.name, id, op); err != nil {
		n.PartDone(h, nil)
		return err
	}
	return h.Wait(context.Background())
}

// pathsOfRuns are the paths of puts by protocol, of those that are measured together.
var pathsOfRuns = [...]Path{selector.Direct: PathBypass, selector.Bounce: PathBounce, selector.Pipe: PathPipe}

func (l gaugeLane) Run(p selector.Protocol, user mem.Range, bytes int, cache *regmgr.Manager) (err error) {
	t := l.journey(false, pathsOfRuns[p])
	for t.off = 0; t.off < user.Bytes && err == nil; t.off += bytes {
		switch part := user.Slice(t.off, bytes); p {
		case selector.Pipe:
			err = l.n.piped(&t, part, p)
		case selector.Direct:
			err = l.past(&t, part, cache)
		default:
			err = l.slotted(&t, part)
		}
	}
	if err != nil {
		return err
	}
	return l.land()
}
