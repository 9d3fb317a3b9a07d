package prices

import (
	"context"
	"errors"
	"time"

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

	// Cut has pipes cut by a model from now on, those of Piped and the program's.
	Cut(m superpipe.Model)
	// Slotted goes through the bounce pool, Piped through the superpipeline, Past from or to memory that cache keeps registered.
	Slotted(get bool, user mem.Range) error
	Piped(get bool, user mem.Range) error
	Past(get bool, user mem.Range, cache *regmgr.Manager) error
	// Run puts user in parts of so many bytes, each as Slotted, Piped or Past do by a protocol and to a place of its own, and waits for all of them together.
	Run(p selector.Protocol, user mem.Range, bytes int, cache *regmgr.Manager) error
	// With is the same NIC, whose such transfers are with other memory of this rank, registered as key says.
	With(far mem.Range, key transport.Region) NIC
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
	Cold    mem.Range        // of this rank, more than caches hold: what long transfers are tried with; none: Memory
	Hush    sched.Hushable   // what the NIC's waits tell that they poll without a pause; nil: there is nothing to tell

	// Rest is called between two tries, with how long it has been worked since the last time, and leaves the cores to the program for some time. Its error ends the
	// measurement. nil: never.
	Rest func(worked time.Duration) error

	caches int // how much they hold, bytes
}

// coldest: so small a part of the memory at either end the longest transfer is, so that others find it in no cache.
const coldest = 4

// Measure measures what transfers cost between this rank and itself. It takes some tenths of a second, or one (tcp), and its rests, in which the rank's other
// goroutines may use the NIC as they like. Every wait of it ends with ctx, or when the NIC is closed. After an error operations may
// still be at work on Memory and Cold: see NIC.Flying.
func Measure(ctx context.Context, c Config) (*Prices, error) {
	if err := c.measureCaches(ctx); err != nil {
		return nil, err
	}
	own, err := c.model(ctx)
	if err != nil {
		return nil, err
	}
	costs, small, err := c.small(own)
	if err != nil {
		return nil, err
	}
	puts := costs[0].At(c.Machine.Slot)
	m := costing(c.Machine, *own, (puts.Lookup+puts.ColdAsk)*nanosecond)
	if err := c.tune(&m, small); err != nil {
		return nil, err
	}
	plain(costs[0], &m)
	return From(m, costs), nil
}

// plain sets what a put that nobody waits for waits past the slots by what was measured of runs of both kinds.
func plain(puts eager.Costs, m *selector.Machine) {
	through, past := m.Runs[selector.Bounce], m.Runs[selector.Direct]
	for i := range puts {
		p := &puts[i]
		if through.Has(p.Bytes) && past.Has(p.Bytes) {
			p.Wire = max(0, p.Copy-p.Lookup-(through.At(p.Bytes)-past.At(p.Bytes))/nanosecond)
		}
	}
}

// rest lets the program have its turn.
func (c *Config) rest(worked time.Duration) error {
	if c.Rest == nil {
		return nil
	}
	return c.Rest(worked)
}

// near and far are the halves of the memory that is measured with.
func (c *Config) near() mem.Range { return c.Memory.Slice(0, c.Memory.Bytes/2) }

func (c *Config) far() mem.Range { return c.Memory.Slice(c.Memory.Bytes/2, c.Memory.Bytes/2) }

// model measures the NIC between both halves of this rank's memory.
func (c *Config) model(ctx context.Context) (m *superpipe.Model, err error) {
	if err := c.NIC.Connect(c.Rank); err != nil {
		return nil, err
	}
	alone := c.NIC.Alone()
	defer func() { alone() }()
	near, far := c.near(), c.far()
	cache, err := regmgr.New(regmgr.Config{Policy: regmgr.OnDemand, Registrar: c.NIC, Sched: c.Sched, Quiet: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cache.Close()) }()
	return superpipe.Measure(ctx, superpipe.Bench{
		Sched: c.Sched, NIC: c.NIC, Poll: c.NIC.Poll, Hush: c.Hush, EP: transport.EP{Index: uint32(c.Rank)},
		Local: transport.SGE{Mem: near, LKey: c.Key.LKey}, RAddr: far.Addr(), RKey: c.Key.RKey, Longest: near.Bytes / coldest,
		Cold: c.Cold.Slice(0, c.caches),
		Rest: func(worked time.Duration) error { // who attends to the NIC has it meanwhile
			alone()
			defer func() { alone = c.NIC.Alone() }()
			return c.rest(worked)
		},
		Pin: func(r mem.Range) error {
			var hold regmgr.Hold
			err := cache.Acquire(&hold, regmgr.Request{Mem: r, Access: transport.LocalWrite})
			if err == nil {
				cache.Release(&hold)
			}
			return err
		},
	})
}
