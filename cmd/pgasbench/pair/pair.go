package pair

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/sim"
)

// Least is the smallest transfer that takes a lease, bytes.
const Least = 64<<10 + 1

// Row is a put or a get neither of whose ends is registered.
type Row struct {
	Way     string // "put" or "get"
	Bytes   int
	Seconds float64
	Share   float64 // what the same between registered memory takes, as a part of that
}

// Compare times puts and gets of some sizes, which are at least Least.
func Compare(ctx context.Context, m sim.Model, sizes []int) (rows []Row, err error) {
	registered, err := run(ctx, m, "register", proto.PathDirect, sizes)
	if err != nil {
		return nil, err
	}
	leased, err := run(ctx, m, "lease", proto.PathLease, sizes)
	for i, t := range leased {
		rows = append(rows, Row{"put", sizes[i], t.put, registered[i].put / t.put}, Row{"get", sizes[i], t.get, registered[i].get / t.get})
	}
	return rows, err
}

// took is how long transfers of one size took, in seconds.
type took struct{ put, get float64 }

// pair is two ranks that measure.
type pair struct {
	way   string
	path  proto.Path
	sizes []int
	s     [2]*sched.Sched
	cards [2][][]byte // by rank and round
	over  bool
	took  []took
}

func run(ctx context.Context, m sim.Model, way string, path proto.Path, sizes []int) ([]took, error) {
	clock := sched.NewSim(0)
	fabric := sim.New(clock, 2, sim.Config{Model: m})
	p := &pair{way: way, path: path, sizes: sizes}
	var errs [2]error
	for r := range p.s {
		p.s[r] = clock.Rank()
	}
	for r := range p.s {
		p.s[r].Go(func() { errs[r] = p.rank(ctx, r, fabric.Provider(r)) })
	}
	if err := errors.Join(clock.Run(), errs[0], errs[1]); err != nil {
		return nil, fmt.Errorf("transfers under PGAS_BULK=%s in virtual time: %w", way, err)
	}
	return p.took, nil
}

// rank is the life of one rank.
func (p *pair) rank(ctx context.Context, rank int, nic transport.Provider) error {
	how, err := proto.ParseBulk(p.way)
	if err != nil {
		return err
	}
	e := proto.New(proto.Config{
		Rank: rank, Size: len(p.s), Sched: p.s[rank], Peers: peers.New(len(p.s)), NICName: nic.Name(), Nodes: []int{0, 1}, Bulk: how,
		OpenNIC: func(ctx context.Context) (transport.Domain, error) {
			return nic.Open(ctx, transport.Config{Rank: rank, Size: len(p.s), Job: p.way, Sched: p.s[rank]})
		},
	})
	most := 0
	for _, n := range p.sizes {
		most = max(most, n)
	}
	xp, err := e.Expose(ctx, seat{p, rank}, []int{0, 1}, mem.Of(make([]byte, most)))
	if err != nil {
		return err
	}
	if rank == 0 {
		err = p.measure(e, &xp.Of[1])
		p.over = true
		p.s[1].Ring()
	} else {
		err = p.until(ctx, rank, "measurement", func() bool { return p.over })
	}
	_, xerr := seat{p, rank}.Exchange(ctx, nil) // nobody frees what the other one uses
	err = errors.Join(err, xerr, xp.Free())
	e.Part()
	return errors.Join(err, e.Close())
}

// measure puts and gets each size.
func (p *pair) measure(e *proto.Engine, to *proto.Remote) error {
	for _, n := range p.sizes {
		var t took
		src, dst := mem.Of(make([]byte, n)), mem.Of(make([]byte, n))
		for round := range 2 {
			for i, b := 0, src.Data(); i < n; i++ {
				b[i] = byte(i>>12) ^ byte(i*5+round)
			}
			clear(dst.Data())
			begun := e.Sched.Now()
			if err := errors.Join(e.Put(to, 0, src), e.Flush(to)); err != nil {
				return err
			}
			put := e.Sched.Now()
			if err := e.Get(to, 0, dst); err != nil {
				return err
			}
			t.put, t.get = (put - begun).Seconds(), (e.Sched.Now() - put).Seconds()
			if !bytes.Equal(src.Data(), dst.Data()) { // A1
				return fmt.Errorf("%d bytes that were put and got again are others", n)
			}
		}
		p.took = append(p.took, t)
	}
	if got, want := int(e.Stats()[p.path].Ops), 4*len(p.sizes); got < want {
		return fmt.Errorf("%d of %d transfers went as they should", got, want)
	}
	return nil
}

// until waits in virtual time; whoever changes what done looks at rings.
func (p *pair) until(ctx context.Context, rank int, op string, done func() bool) error {
	sp := p.s[rank].Begin(ctx, sched.What{Op: op, Peer: -1}, nil)
	defer sp.End()
	for !done() {
		if err := sp.Step(); err != nil {
			return err
		}
	}
	return nil
}

// seat is a rank's place among those that exchange cards. They tell each other beside the wire, which costs nothing.
type seat struct {
	p    *pair
	rank int
}

// Exchange implements proto.Exchanger.
func (s seat) Exchange(ctx context.Context, card []byte) ([][]byte, error) {
	p, other := s.p, 1-s.rank
	round := len(p.cards[s.rank])
	p.cards[s.rank] = append(p.cards[s.rank], card)
	p.s[other].Ring()
	err := p.until(ctx, s.rank, "exchange", func() bool { return len(p.cards[other]) > round })
	if err != nil {
		return nil, err
	}
	return [][]byte{p.cards[0][round], p.cards[1][round]}, nil
}
