package tcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gopgas/internal/sched"
	"gopgas/internal/softnic"
	"gopgas/internal/wire"
	"gopgas/transport"
)

// Config fits the NIC to its use. The zero value is for a job on one machine, within the process's limits.
type Config struct {
	// AcrossNodes: the job's ranks are on several machines. Without a Device the domain then listens on every
	// address of this machine that others can reach, and not on 127.0.0.1.
	AcrossNodes bool

	// FailureTimeout is how long a peer may be silent, or a connection take no bytes, before the peer is called
	// gone; a connection must be made within it too, by as many tries as that takes. An idle peer speaks five times as often. 0: 5 s.
	FailureTimeout time.Duration

	MaxPost    int   // operations of one endpoint in flight; 0: 256, at most 16384
	MaxRecv    int   // receive buffers of a rank not yet polled; 0: 1024, or what more than 112 ranks need
	MaxMessage int   // bytes of one operation; 0: 1 GiB, which is also the most
	MaxRegions int   // registrations of a rank; 0: 8192, at most 65536
	MaxPinned  int64 // bytes that this process may lock; 0: RLIMIT_MEMLOCK, the soft limit raised to the hard one
}

func (c Config) withDefaults() Config {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&c.MaxPost, 256)
	set(&c.MaxMessage, wire.MaxPayload)
	set(&c.MaxRegions, 8192)
	if c.FailureTimeout == 0 {
		c.FailureTimeout = 5 * time.Second
	}
	return c
}

// maxWindow is the largest MaxPost: what a peer may have outstanding here.
const maxWindow = 1 << 14

func (c Config) validate() error {
	if c.MaxPost < 1 || c.MaxPost > maxWindow || c.MaxRecv < 0 || c.MaxMessage < 8 || c.MaxMessage > wire.MaxPayload ||
		c.MaxRegions < 1 || c.MaxPinned < 0 || c.FailureTimeout < time.Millisecond {
		return fmt.Errorf("tcp NIC: settings out of range: %+v", c)
	}
	return nil
}

// Provider opens TCP NICs. All domains that it opens share one count of locked pages, so a process uses one
// provider. New makes one.
type Provider struct {
	cfg Config

	mu   sync.Mutex
	pins *softnic.Pins // made by the first Open
}

var _ transport.Provider = (*Provider)(nil)

// New returns a provider. It takes nothing of the machine until a domain is opened.
func New(c Config) *Provider { return &Provider{cfg: c.withDefaults()} }

// Name is "tcp".
func (p *Provider) Name() string { return "tcp" }

// Errors of Open.
var (
	errRank   = errors.New("a rank outside the job")
	errSecret = errors.New("no secret: over TCP anybody could pretend to be a rank of this job; the launcher must hand the same " +
		"random bytes to all its ranks and to nobody else")
)

// Open listens for the peers of rank c.Rank and starts what serves them. c.Device names an interface or an
// address of this machine; without it the domain listens on 127.0.0.1, or as Config.AcrossNodes says. A job of
// more than one rank must have a secret. Open blocks on nothing but the system's calls.
func (p *Provider) Open(ctx context.Context, c transport.Config) (transport.Domain, error) {
	if err := p.cfg.validate(); err != nil {
		return nil, err
	}
	if c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size {
		return nil, fmt.Errorf("open tcp: rank %d of %d: %w", c.Rank, c.Size, errRank)
	}
	if c.Size > 1 && len(c.Secret) == 0 {
		return nil, fmt.Errorf("open tcp: %w", errSecret)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	pins, err := p.pages()
	if err != nil {
		return nil, fmt.Errorf("open tcp: %w", err)
	}
	if c.Sched == nil {
		c.Sched = sched.Process(c.Size)
	}
	cfg := p.cfg
	if cfg.MaxRecv == 0 {
		cfg.MaxRecv = c.Receives()
	}
	d, err := openDomain(ctx, cfg, c, pins)
	if err != nil {
		return nil, fmt.Errorf("open tcp: %w", err)
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
