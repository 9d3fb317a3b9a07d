package soft

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"sync"
	"time"

	"gopgas/internal/sched"
	"gopgas/internal/softnic"
	"gopgas/transport"
	"gopgas/transport/shm"
)

// Config fits the NIC to its use. The zero value is a NIC as fast as the machine, within the process's limits.
type Config struct {
	// Mapper returns what makes and maps the memory of a domain's queues; the domain closes it. nil: one of
	// package shm for ranks that are processes. Ranks that are goroutines of one process work with it too, but
	// only with mappers of one shm.NewGroup does the race detector see what orders their accesses.
	Mapper func(c transport.Config) (transport.Mapper, error)

	Latency   time.Duration // every operation takes effect so much later; 0: as soon as it can
	Bandwidth int64         // bytes per second of each rank's NIC; 0: as many as the machine moves

	// Spin is how long an engine without work looks for some before it sleeps. 0: it adapts, between 5 and
	// 200 us, to how soon work came after it fell asleep.
	Spin time.Duration

	MaxPost    int   // operations of one endpoint in flight; 0: 256
	MaxRecv    int   // receive buffers of a rank not yet polled; 0: 1024, or what more than 112 ranks need
	MaxMessage int   // bytes of one operation; 0: 1 GiB
	MaxRegions int   // registrations of a rank; 0: 8192, at most 65536
	MaxPinned  int64 // bytes that this process may lock; 0: RLIMIT_MEMLOCK, the soft limit raised to the hard one

	// FailureTimeout is how long a peer whose process lives may leave a connection or a deregistration waiting.
	// 0: 5 s. The death of a peer's process is noticed at once.
	FailureTimeout time.Duration

	headStart time.Duration // see help.go; 0: the constant of that name
	sleepMax  time.Duration // see engine.go; likewise
}

func (c Config) withDefaults() Config {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&c.MaxPost, 256)
	set(&c.MaxMessage, 1<<30)
	set(&c.MaxRegions, 8192)
	if c.headStart == 0 {
		c.headStart = headStart
	}
	if c.sleepMax == 0 {
		c.sleepMax = sleepMax
	}
	if c.FailureTimeout == 0 {
		c.FailureTimeout = 5 * time.Second
	}
	if c.Mapper == nil {
		c.Mapper = func(transport.Config) (transport.Mapper, error) {
			return shm.Open(shm.Config{What: "queues of the soft NIC"})
		}
	}
	return c
}

func (c Config) validate() error {
	if c.Latency < 0 || c.Bandwidth < 0 || c.Spin < 0 || c.MaxPost < 1 || c.MaxRecv < 0 || c.MaxMessage < 8 || c.MaxMessage > 1<<31-1 ||
		c.MaxPinned < 0 || c.FailureTimeout < 0 {
		return fmt.Errorf("soft NIC: settings out of range: %+v", c)
	}
	return nil
}

// Provider opens soft NICs. All domains that it opens share one count of locked pages, so a process uses one
// provider. New makes one.
type Provider struct {
	cfg Config

	mu   sync.Mutex
	pins *softnic.Pins // made by the first Open
}

var _ transport.Provider = (*Provider)(nil)

// New returns a provider. It takes nothing of the machine until a domain is opened.
func New(c Config) *Provider { return &Provider{cfg: c.withDefaults()} }

// Name is "soft".
func (p *Provider) Name() string { return "soft" }

var errRank = errors.New("a rank outside the job")

// Open makes the queues of rank c.Rank in shared memory and starts its engine. Its error is a
// *transport.LimitError where the machine has no room, and wraps ErrUnsupported where processes cannot copy
// from each other. Processes of this user may copy from and to this process from then on.
func (p *Provider) Open(ctx context.Context, c transport.Config) (transport.Domain, error) {
	if err := p.cfg.validate(); err != nil {
		return nil, err
	}
	if c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size {
		return nil, fmt.Errorf("open soft: rank %d of %d: %w", c.Rank, c.Size, errRank)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	pins, err := p.pages()
	if err != nil {
		return nil, fmt.Errorf("open soft: %w", err)
	}
	if c.Sched == nil {
		c.Sched = sched.Process(c.Size)
	}
	cfg := p.cfg
	if cfg.MaxRecv == 0 {
		cfg.MaxRecv = c.Receives()
	}
	d, err := openDomain(cfg, c, pins)
	if err != nil {
		return nil, fmt.Errorf("open soft: %w", err)
	}
	return d, nil
}

func (p *Provider) pages() (*softnic.Pins, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pins == nil {
		pins, err := softnic.NewPins(p.cfg.MaxPinned)
		if err != nil {
			return nil, err
		}
		p.pins = pins
	}
	return p.pins, nil
}

// openDomain makes a domain and leaves nothing behind where it fails.
func openDomain(cfg Config, c transport.Config, pins *softnic.Pins) (_ *domain, err error) {
	table, err := softnic.NewTable(pins, cfg.MaxRegions)
	if err != nil {
		return nil, err
	}
	n, err := newNonce()
	if err != nil {
		return nil, err
	}
	mapper, err := cfg.Mapper(c)
	if err != nil {
		return nil, err
	}
	regions := ceilPow2(cfg.MaxRegions)
	m, token, err := mapper.Alloc(boardBytes(c.Size, regions))
	if err != nil {
		return nil, errors.Join(err, mapper.Close())
	}
	if len(token) > maxToken {
		return nil, errors.Join(fmt.Errorf("a token of %d bytes, at most %d fit an address", len(token), maxToken), mapper.Close())
	}
	d := newDomain(cfg, c, table, mapper, board{mem: m, size: c.Size, regions: regions})
	d.me = address{
		rank: uint32(c.Rank), size: uint32(c.Size), pid: uint32(os.Getpid()), base: m.Addr(), nonce: n, token: token,
	}
	d.address = d.me.encode(c.Job, c.Secret)
	d.caps.MaxPinned = pins.Limit()
	d.caps.MaxRegions = cfg.MaxRegions
	d.board.initialise(n)
	allowPeers()
	d.helpers.Add(1)
	d.sched.Go(d.runEngine)
	return d, nil
}

func ceilPow2(n int) int { return 1 << bits.Len(uint(n-1)) }

// slowed reports whether operations take longer than the machine needs.
func (c *Config) slowed() bool { return c.Latency > 0 || c.Bandwidth > 0 }
