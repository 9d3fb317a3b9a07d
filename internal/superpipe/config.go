package superpipe

import (
	"errors"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// NIC is what pipes need of the NIC they run over; a transport.Domain has it. Its completions are handed to Completed.
type NIC interface {
	Caps() transport.Caps
	Register(r mem.Range, a transport.Access) (transport.Region, error)
	Deregister(r transport.Region) error
	Post(ops []transport.Op) (n int, err error)
}

// Policy is how large transfers of unregistered memory travel. All but Super are baselines to compare it with.
type Policy uint8

// The policies, as PGAS_BULK names them.
const (
	Super         Policy = iota // "superpipe": chunks that grow
	Naive                       // "copy": copy a slot, send it, wait; one slot is the whole message where it fits
	Flat                        // "flat": chunks of C_opt
	OnTheFly                    // "onthefly": register all, send, deregister
	PipelinedPins               // "pipelined": register a piece while the one before travels, deregister it after
)

var policyNames = [...]string{Super: "superpipe", Naive: "copy", Flat: "flat", OnTheFly: "onthefly", PipelinedPins: "pipelined"}

// String returns the policy's name.
func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return fmt.Sprintf("policy %d", uint8(p))
}

// ParsePolicy is the inverse of String; the empty name is Super.
func ParsePolicy(name string) (Policy, error) {
	if name == "" {
		return Super, nil
	}
	for p, n := range policyNames {
		if n == name {
			return Policy(p), nil
		}
	}
	return 0, fmt.Errorf("bulk policy %q: there are %v", name, policyNames)
}

// Config is what both sides of the pipes of one rank have in common; slots and folding are equal on all ranks.
type Config struct {
	NIC     NIC
	Cookies uint64 // operations of this package carry cookies from here on, fewer than CookieSpan

	SlotBytes int // of a slot, a multiple of Block; 0: 128 KiB
	Fold      int // N: slots that one transfer uses in turn, 2 to 8; 0: 3
	Slots     int // an origin's slots, at least Fold; 0: twice as many
	Leases    int // transfers that a target takes in at once, each Fold slots; 0: 2
	PerOrigin int // of them, to one origin; 0: half, rounded up

	Later bool // a target registers no workspace before Prepare
	// Kept: a lease is out until its origin returns it, and the place of its acknowledgements until the target has agreed
	// (Return, Forgive). So it must be over NICs whose operations are posted again after a connection broke: what was flushed may
	// have been done, and is done once more when the transfer is over as far as the other side knows.
	Kept bool

	Model  *Model // what was measured; nil: the defaults of the paper. See Origin.Calibrate
	Policy Policy

	// Copied is told of what an origin or a target has copied at once, as a part of a transfer of whole bytes: in virtual
	// time somebody has to let that time pass. It is called with no lock held. nil: nobody asks.
	Copied func(bytes, whole int)
}

// CookieSpan is how many cookies, counted from Config.Cookies, belong to an origin or a target.
const CookieSpan = 1 << 40

// Limits of a Config.
const (
	mostFold   = 8
	mostLeases = 1 << 10
	mostPipes  = Most
)

// Most is how many transfers of one origin can be under way.
const Most = 64

func (c Config) withDefaults() Config {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&c.SlotBytes, 128<<10)
	set(&c.Fold, 3)
	set(&c.Slots, 2*c.Fold)
	set(&c.Leases, 2)
	set(&c.PerOrigin, (c.Leases+1)/2)
	return c
}

var errConfig = errors.New("superpipe: settings out of range")

func (c *Config) validate() error {
	if c.NIC == nil || c.SlotBytes < Block || c.SlotBytes%Block != 0 || c.Fold < 2 || c.Fold > mostFold || c.Slots < c.Fold ||
		c.Leases < 1 || c.Leases > mostLeases || c.PerOrigin < 1 || c.Policy > PipelinedPins {
		return fmt.Errorf("%w: slots of %d bytes (a multiple of %d), %d of them, folded by %d (2 to %d), %d leases (1 to %d), %v", errConfig,
			c.SlotBytes, Block, c.Slots, c.Fold, mostFold, c.Leases, mostLeases, c.Policy)
	}
	return nil
}

// workspace makes and registers n slots. The memory is the library's own and lives as long as the NIC.
func (c *Config) workspace(what string, n int, a transport.Access) (mem.Range, transport.Region, error) {
	// A block more, so that slots can begin on the grid.
	all := mem.Make(n*c.SlotBytes + Block)
	r := all.Slice(int(-all.Addr()&(Block-1)), n*c.SlotBytes)
	reg, err := c.NIC.Register(r, a)
	if err != nil {
		return r, reg, fmt.Errorf("register %d slots of %d bytes for large transfers %s: %w", n, c.SlotBytes, what, err)
	}
	return r, reg, nil
}

// Way is how the target of copied chunks learns that one is there.
type Way uint8

// The ways. A workspace keeps to one for its life: payload never lies where flags are looked for.
const (
	WayNone  Way = iota // this NIC has neither: register the target
	WayFlags            // sub-blocks on the grid: the NIC places data in order
	WayImm              // a write with immediate per chunk
)

// wayOf is the way that a NIC allows.
func wayOf(c transport.Caps) Way {
	switch {
	case c.InOrderData && c.MaxMessage >= Block:
		return WayFlags
	case c.WriteImm:
		return WayImm
	default:
		return WayNone
	}
}

// String names the way as statistics print it.
func (w Way) String() string {
	return [...]string{"none", "flags in sub-blocks", "write with immediate"}[w]
}

// owns reports whether a completion is of an operation posted with these cookies. A receive carries cookies of its own.
func (c *Config) owns(done *transport.Completion) bool {
	switch done.Kind {
	case transport.OpWrite, transport.OpWriteImm, transport.OpRead:
		return done.Cookie-c.Cookies < CookieSpan
	default:
		return false
	}
}
