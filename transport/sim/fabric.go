package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// Config is a simulated machine. The zero value is one whose operations cost nothing, one rank on each node.
type Config struct {
	Model        Model
	RanksPerNode int // they share the node's NIC; 0: 1
	Faults       Faults

	MaxPost    int   // operations of one endpoint not yet polled; 0: 256
	MaxRecv    int   // receive buffers not yet polled; 0: 4096
	MaxInline  int   // bytes; 0: 128, below 0: none
	MaxMessage int   // bytes; 0: 8 MiB
	MaxRegions int   // 0: no limit
	MaxPinned  int64 // bytes registered by one rank at once; 0: no limit
}

// Faults is what goes wrong. All of it is repeatable: chance comes from the simulation's seed.
type Faults struct {
	// Delay makes every operation spend up to so much longer on the wire, by chance.
	Delay time.Duration
	// Reorder lets writes on one endpoint overtake each other within Delay. The NIC then promises no order of writes.
	Reorder bool
	// Break breaks connections.
	Break []Fault
	// Kill ends ranks: they run no further, and their peers hear of it after Model.Detect, from their NICs and, on the rank's own node (see Host), from
	// the kernel.
	Kill []Fault
}

// Fault happens to a rank when it posts its Op-th operation, counted from 1, instead of that operation; or, where Op is
// 0, at time At. A broken connection is that of the operation. Operations count from Begin on.
type Fault struct {
	Rank int
	Op   uint64
	At   time.Duration
}

// Counts says what the fabric's NICs have done.
type Counts struct {
	Writes, Reads, Atomics, Messages uint64
	Bytes                            uint64 // payload
	Failed                           uint64 // operations that ended in an error
	Broken                           uint64 // connections that Faults.Break broke
	Registrations, Deregistrations   uint64
	Pinned, PeakPinned               int64  // bytes registered, of all ranks together
	Trace                            uint64 // a hash of everything that happened, and when
}

// Ops returns the number of operations.
func (c Counts) Ops() uint64 { return c.Writes + c.Reads + c.Atomics + c.Messages }

// Fabric is the machine: nodes with a NIC each, and the wires between them.
type Fabric struct {
	sim    *sched.Sim
	cfg    Config
	model  Model
	ranks  []*domain // the open domain of each rank
	opened []uint64  // how often each rank has been opened
	killed []bool    // ranks that were killed
	begun  []bool    // ranks of which Faults counts the operations
	posted []uint64  // operations since then
	scheds []*sched.Sched
	mourn  func(rank int) // told of a death when Model.Detect has passed; nil: nobody is
	ports  []port         // by node
	free   *flight
	counts Counts
}

// port is the NIC of a node: what its ranks share.
type port struct {
	out, in, atomic time.Duration // when the sender, the receiver and the atomic unit are free again
}

// New returns the machine for ranks, in the virtual time of m, and makes m charge the model's copies.
func New(m *sched.Sim, ranks int, c Config) *Fabric {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&c.RanksPerNode, 1)
	set(&c.MaxPost, 256)
	set(&c.MaxRecv, 4096)
	set(&c.MaxInline, 128)
	set(&c.MaxMessage, 8<<20)
	c.MaxInline = max(c.MaxInline, 0)
	f := &Fabric{
		sim: m, cfg: c, model: c.Model, ranks: make([]*domain, ranks), opened: make([]uint64, ranks),
		killed: make([]bool, ranks), begun: make([]bool, ranks), posted: make([]uint64, ranks),
		ports: make([]port, (ranks+c.RanksPerNode-1)/c.RanksPerNode),
	}
	m.SetCopyCost(f.model.CopyCost)
	for _, k := range c.Faults.Kill {
		if k.Op == 0 {
			m.At(k.At, death{f, k.Rank}, 0)
		}
	}
	for _, k := range c.Faults.Break {
		if k.Op == 0 {
			m.At(k.At, severance{f, k.Rank}, 0)
		}
	}
	return f
}

// death is a rank's, at a time.
type death struct {
	f    *Fabric
	rank int
}

// Fire implements sched.Action.
func (d death) Fire(uint64) { d.f.Kill(d.rank) }

// severance breaks all connections of a rank, at a time.
type severance struct {
	f    *Fabric
	rank int
}

// Fire implements sched.Action.
func (s severance) Fire(uint64) {
	if d := s.f.ranks[s.rank]; d != nil {
		for _, e := range d.eps {
			if e != nil {
				e.breakUp(linkBroken, s.f.sim.Now())
			}
		}
	}
}

// Node returns the number of rank's node.
func (f *Fabric) Node(rank int) int { return rank / f.cfg.RanksPerNode }

// virtual reports whether coroutines use the machine, and not goroutines of a test under a lock of its own.
func (f *Fabric) virtual() bool { return f.sim.Running() >= 0 }

// Counts returns what has happened so far.
func (f *Fabric) Counts() Counts { return f.counts }

func (f *Fabric) caps() transport.Caps {
	return transport.Caps{
		MaxInline: f.cfg.MaxInline, MaxSGE: len(transport.Op{}.SGE), MaxMessage: f.cfg.MaxMessage, MaxPost: f.cfg.MaxPost,
		MaxRegions: f.cfg.MaxRegions, MaxPinned: f.cfg.MaxPinned,
		Atomics64: true, AtomicsCPU: true, Sends: true, WriteImm: true,
		OrderedWrites: !f.cfg.Faults.Reorder, InOrderData: !f.cfg.Faults.Reorder,
	}
}

// note mixes what has happened into the trace.
func (f *Fabric) note(what uint64, from, to int, bytes int) {
	h := f.counts.Trace
	for _, v := range [...]uint64{uint64(f.sim.Now()), what, uint64(from)<<32 | uint64(to), uint64(bytes)} {
		h = (h ^ v) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	f.counts.Trace = h
}

// Provider returns the provider that opens rank's domain. A rank has one domain at a time.
func (f *Fabric) Provider(rank int) transport.Provider { return provider{f, rank} }

type provider struct {
	f    *Fabric
	rank int
}

// Name implements transport.Provider.
func (provider) Name() string { return "sim" }

// Open implements transport.Provider. c.Sched is the rank's in the fabric's own virtual time.
func (p provider) Open(_ context.Context, c transport.Config) (transport.Domain, error) {
	f := p.f
	switch {
	case p.rank < 0 || p.rank >= len(f.ranks) || c.Rank != p.rank:
		return nil, fmt.Errorf("open sim: rank %d on the provider of rank %d of a machine of %d", c.Rank, p.rank, len(f.ranks))
	case c.Sched == nil:
		return nil, fmt.Errorf("open sim: rank %d has no scheduler: %w", c.Rank, transport.ErrUnsupported)
	case f.ranks[p.rank] != nil:
		return nil, fmt.Errorf("open sim: rank %d is open already", p.rank)
	}
	f.opened[p.rank]++
	d := newDomain(f, p.rank, f.opened[p.rank], c.Sched)
	f.ranks[p.rank] = d
	return d, nil
}

// Host says who runs on the machine: scheds by rank, so that a rank can be killed that has not opened its NIC and perhaps never does, and mourn,
// which may be nil and is called Model.Detect after each death, as an Action is: for what a node's own kernel tells of its processes.
func (f *Fabric) Host(scheds []*sched.Sched, mourn func(rank int)) { f.scheds, f.mourn = scheds, mourn }

// Kill ends a rank as the end of its process would: its domain answers no more, its coroutines never run again, and
// its peers hear of it after Model.Detect. A rank that kills itself does not return. One that has ended is not killed.
func (f *Fabric) Kill(rank int) {
	s := f.lives(rank)
	if s == nil {
		return
	}
	f.killed[rank] = true
	known := f.sim.Now() + f.model.Detect
	if d := f.ranks[rank]; d != nil {
		d.leave(known)
	}
	if f.mourn != nil {
		f.sim.At(known, mourning{f}, uint64(rank))
	}
	s.Kill()
}

// lives returns the scheduler of a rank that has not ended, as far as the machine can tell: one whose NIC is open, or that has had none yet.
func (f *Fabric) lives(rank int) *sched.Sched {
	switch d := f.ranks[rank]; {
	case d != nil:
		return d.sched
	case f.scheds == nil || f.opened[rank] > 0 || f.killed[rank] || !f.scheds[rank].Lives():
		return nil
	}
	return f.scheds[rank]
}

// mourning is the moment at which a death is known.
type mourning struct{ f *Fabric }

// Fire implements sched.Action.
func (m mourning) Fire(rank uint64) { m.f.mourn(int(rank)) }

// Begin has Faults count rank's operations: what the rank has posted until now was its start.
func (f *Fabric) Begin(rank int) { f.begun[rank], f.posted[rank] = true, 0 }

// Killed reports whether rank was killed.
func (f *Fabric) Killed(rank int) bool { return f.killed[rank] }

// addressBytes: rank, how often it was opened.
const addressBytes = 16

func address(rank int, opened uint64) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, addressBytes), uint64(rank))
	return binary.LittleEndian.AppendUint64(b, opened)
}

// at returns the open domain that published addr as peer.
func (f *Fabric) at(peer int, addr []byte) (*domain, error) {
	if len(addr) != addressBytes || peer < 0 || peer >= len(f.ranks) || binary.LittleEndian.Uint64(addr) != uint64(peer) {
		return nil, fmt.Errorf("connect to rank %d: %q is not its address on this machine", peer, addr)
	}
	d := f.ranks[peer]
	if d == nil || d.opened != binary.LittleEndian.Uint64(addr[8:]) {
		return nil, transport.NewOpError("connect", peer, transport.ErrPeerGone)
	}
	return d, nil
}
