package prices

import (
	"context"

	"gopgas/eager"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
)

// NIC makes the transfers that are timed. Those of Slotted, Past and Piped are between the near half of Config.Memory, where user lies,
// and the far half, from its first byte on; they are over on return, and are not counted as the program's.
type NIC interface {
	superpipe.NIC // what is posted here Poll reports

	// Poll takes the completions of what was posted. The error of an operation is its own.
	Poll(cq []transport.Completion) (int, error)
	// Flying reports whether some of what was posted has not been reported.
	Flying() bool
	// Connect makes the connection with a rank, if there is none.
	Connect(rank int) error
	// Alone keeps whoever else polls out of the way, as far as that can be, until what it returns is called.
	Alone() (done func())

	// Slotted goes through the bounce pool, Piped through the superpipeline, Past from or to memory that cache keeps registered.
	Slotted(get bool, user mem.Range) error
	Piped(get bool, user mem.Range) error
	Past(get bool, user mem.Range, cache *regmgr.Manager) error
}

// Config is what Measure measures.
type Config struct {
	Sched   *sched.Sched
	NIC     NIC
	Machine selector.Machine // what is known of it without measuring
	Inline  int              // largest payload sent inline, bytes
	Rank    int              // this one
	Memory  mem.Range        // of this rank, in two halves
	Key     transport.Region // Memory's, registered for everybody's reads and writes
	Peer    Peer
}

// Peer is another rank's memory that may be read. The zero Peer is none.
type Peer struct {
	Rank      int
	Addr, Key uint64
	Bytes     int
}

// coldest: so small a part of the memory at either end the longest transfer is, so that others find it in no cache.
const coldest = 4

// Measure measures what transfers cost: between this rank and itself, and by reads of the peer's memory how much more they cost with
// that. It takes twenty to forty milliseconds, in which the rank's other goroutines may use the NIC as they like. Every wait of
// it ends with ctx, or when the NIC is closed. After an error operations may still be at work on Memory: see NIC.Flying.
func Measure(ctx context.Context, c Config) (*Prices, error) {
	own, peer, err := c.models(ctx)
	if err != nil {
		return nil, err
	}
	puts, gets, small, err := c.small(own)
	if err != nil {
		return nil, err
	}
	m := costing(c.Machine, *own, puts.At(c.Machine.Slot).Lookup*nanosecond)
	if err := c.tune(&m, small); err != nil {
		return nil, err
	}
	m.Model = *peer
	return &Prices{
		Selector: m.Selector(0), Learned: new(selector.Learned), Small: [2]eager.Costs{puts, gets}, Measured: true,
	}, nil
}

// near and far are the halves of the memory that is measured with.
func (c *Config) near() mem.Range { return c.Memory.Slice(0, c.Memory.Bytes/2) }

func (c *Config) far() mem.Range { return c.Memory.Slice(c.Memory.Bytes/2, c.Memory.Bytes/2) }

// models measures the NIC between both halves of this rank's memory, and with the peer.
func (c *Config) models(ctx context.Context) (own, peer *superpipe.Model, err error) {
	if err := c.NIC.Connect(c.Rank); err != nil {
		return nil, nil, err
	}
	defer c.NIC.Alone()()
	near, far := c.near(), c.far()
	b := superpipe.Bench{
		Sched: c.Sched, NIC: c.NIC, Poll: c.NIC.Poll, EP: transport.EP{Index: uint32(c.Rank)},
		Local: transport.SGE{Mem: near, LKey: c.Key.LKey}, RAddr: far.Addr(), RKey: c.Key.RKey, Longest: near.Bytes / coldest,
	}
	own, err = superpipe.Measure(ctx, b)
	if err != nil || c.Peer.Bytes == 0 || c.NIC.Connect(c.Peer.Rank) != nil {
		return own, own, err
	}
	b.EP.Index, b.RAddr, b.RKey, b.Longest = uint32(c.Peer.Rank), c.Peer.Addr, c.Peer.Key, min(near.Bytes, c.Peer.Bytes)
	m := *own
	if err := m.Toward(ctx, b); err != nil && c.NIC.Flying() {
		return nil, nil, err // else the peer is gone, or its window is small: what is known of this rank remains
	}
	return own, &m, nil
}
