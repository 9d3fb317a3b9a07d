package transporttest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// FabricConfig makes the loop-back NIC smaller, poorer or slower. The zero value is a NIC that has everything.
type FabricConfig struct {
	Seed   uint64        // of the keys and of Jitter
	Jitter time.Duration // every operation is performed up to so much later, in order on its endpoint; 0: at once

	MaxPost    int   // operations of one endpoint not yet polled; 0: 256
	MaxRecv    int   // receive buffers not yet polled; 0: 1024, or what more than 112 ranks need
	MaxInline  int   // bytes; 0: 128
	MaxSGE     int   // 0: 4
	MaxMessage int   // bytes; 0: 8 MiB
	MaxRegions int   // 0: no limit
	MaxPinned  int64 // bytes; 0: no limit
	Untold     bool  // Caps do not tell MaxPinned: who meets the limit learns of it then

	InOrder    bool // InOrderData is promised: writes land word by word, each an atomic store
	NoInline   bool // MaxInline is 0
	NoAtomics  bool // neither OpFetchAdd nor OpCompareSwap
	NotCPU     bool // AtomicsCPU is not promised
	NoSends    bool // no OpSend, no PostRecv; implies NoWriteImm
	NoWriteImm bool
}

func (c FabricConfig) withDefaults() FabricConfig {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&c.MaxPost, 256)
	set(&c.MaxRecv, transport.Config{Size: 1}.Receives())
	set(&c.MaxInline, 128)
	set(&c.MaxSGE, len(transport.Op{}.SGE))
	set(&c.MaxMessage, 8<<20)
	c.MaxSGE = min(c.MaxSGE, len(transport.Op{}.SGE))
	if c.NoInline {
		c.MaxInline = 0
	}
	c.NoWriteImm = c.NoWriteImm || c.NoSends
	return c
}

func (c *FabricConfig) caps() transport.Caps {
	told := c.MaxPinned
	if c.Untold {
		told = 0
	}
	return transport.Caps{
		MaxInline: c.MaxInline, MaxSGE: c.MaxSGE, MaxMessage: c.MaxMessage, MaxPost: c.MaxPost,
		MaxRegions: c.MaxRegions, MaxPinned: told,
		Atomics64: !c.NoAtomics, AtomicsCPU: !c.NoAtomics && !c.NotCPU,
		OrderedWrites: true, InOrderData: c.InOrder, Sends: !c.NoSends, WriteImm: !c.NoWriteImm,
	}
}

// Fabric is the wire between the loop-back domains of one process. All its methods may be called concurrently.
type Fabric struct {
	cfg   FabricConfig
	ranks []atomic.Pointer[domain] // the open domain of each rank

	mu   sync.Mutex
	rng  *rand.Rand
	open []uint64   // under mu: how often each rank has been opened
	inc  [][]uint32 // under mu: incarnations of each pair, [lower][higher]
}

// NewFabric returns a fabric for n ranks. It holds nothing but memory until a domain is opened.
func NewFabric(n int, opts FabricConfig) *Fabric {
	if opts.MaxRecv == 0 {
		opts.MaxRecv = transport.Config{Size: n}.Receives()
	}
	f := &Fabric{
		cfg: opts.withDefaults(), ranks: make([]atomic.Pointer[domain], n),
		rng: rand.New(rand.NewPCG(opts.Seed, 0)), open: make([]uint64, n), inc: make([][]uint32, n),
	}
	for i := range f.inc {
		f.inc[i] = make([]uint32, n)
	}
	return f
}

// Provider returns the provider that opens rank's domain. A rank has one domain at a time; when it is closed
// another may be opened, with another address.
func (f *Fabric) Provider(rank int) transport.Provider { return provider{f, rank} }

type provider struct {
	f    *Fabric
	rank int
}

func (p provider) Name() string { return "loopback" }

func (p provider) Open(_ context.Context, c transport.Config) (transport.Domain, error) {
	f := p.f
	if p.rank < 0 || p.rank >= len(f.ranks) || c.Rank != p.rank {
		return nil, fmt.Errorf("open loopback: rank %d on the provider of rank %d of a fabric of %d", c.Rank, p.rank, len(f.ranks))
	}
	s := c.Sched
	if s == nil {
		s = sched.Goroutine(len(f.ranks))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ranks[p.rank].Load() != nil {
		return nil, fmt.Errorf("open loopback: rank %d is open already", p.rank)
	}
	f.open[p.rank]++
	d := newDomain(f, p.rank, f.open[p.rank], s)
	f.ranks[p.rank].Store(d)
	s.Go(d.runAgent)
	return d, nil
}

// Kill ends rank's domain as the end of its process would: at once, without a word. Its peers are told that it
// is gone. The dead domain's methods return ErrClosed. Killing a rank that is not open does nothing.
func (f *Fabric) Kill(rank int) {
	if d := f.ranks[rank].Load(); d != nil {
		_ = d.Close()
	}
}

// addressBytes: rank, how often it was opened.
const addressBytes = 16

func appendAddress(b []byte, rank int, opened uint64) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(rank))
	return binary.LittleEndian.AppendUint64(b, opened)
}

// connect returns a's end of a working connection with the rank at addr, making one where there is none.
func (f *Fabric) connect(a *domain, peer int, addr []byte) (transport.EP, error) {
	if len(addr) != addressBytes || peer < 0 || peer >= len(f.ranks) ||
		binary.LittleEndian.Uint64(addr) != uint64(peer) {
		return transport.EP{}, fmt.Errorf("connect to rank %d: %q is not its address on this fabric", peer, addr)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.stop.Load() {
		return transport.EP{}, transport.ErrClosed
	}
	b := f.ranks[peer].Load()
	if b == nil || b.opened != binary.LittleEndian.Uint64(addr[8:]) {
		return transport.EP{}, transport.NewOpError("connect", peer, transport.ErrPeerGone)
	}
	if e := a.endOf(peer); e != nil && e.link.state.Load() == linkUp {
		return e.ep, nil
	}
	inc := &f.inc[min(a.rank, peer)][max(a.rank, peer)]
	*inc++
	l := &link{}
	ep := a.attach(b, l, *inc)
	if a != b {
		b.attach(a, l, *inc)
	}
	return ep, nil
}

// disconnect breaks the connection that a knows as ep. An older incarnation is gone already.
func (f *Fabric) disconnect(a *domain, ep transport.EP) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.stop.Load() {
		return transport.ErrClosed
	}
	if int(ep.Index) >= len(f.ranks) {
		return fmt.Errorf("disconnect: no endpoint %d", ep.Index)
	}
	if e := a.endOf(int(ep.Index)); e != nil && e.ep == ep {
		e.link.breakUp(linkBroken)
		a.detach(e)
	}
	return nil
}

// leave takes d off the fabric and tells its peers.
func (f *Fabric) leave(d *domain) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ranks[d.rank].CompareAndSwap(d, nil) {
		return false
	}
	d.stop.Store(true)
	for i := range f.ranks {
		p := f.ranks[i].Load()
		if p == nil {
			continue
		}
		if e := p.endOf(d.rank); e != nil && e.peer == d {
			e.link.breakUp(linkGone)
			p.report(entry{c: transport.Completion{EP: e.ep, Kind: transport.OpPeerDown, Status: transport.StatusPeerGone}})
			p.agent.Ring()
		}
	}
	return true
}

// jitter returns how much later an operation is performed.
func (f *Fabric) jitter(r *rand.Rand) int64 {
	if f.cfg.Jitter <= 0 {
		return 0
	}
	return r.Int64N(int64(f.cfg.Jitter) + 1)
}
