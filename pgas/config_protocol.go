package pgas

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"gopgas/eager"
	"gopgas/internal/ledger"
	"gopgas/internal/proto"
)

// What travels how unless somebody says otherwise: the cheapest way by what was measured and learned.
const (
	defaultEager = "auto"
	defaultBulk  = "auto"
)

// mostLeases is the largest Config.Leases.
const mostLeases = 256

// protocolsFrom reads what is forced of the ways in which transfers travel over a NIC.
func (c *Config) protocolsFrom(environ []string) error {
	c.Eager, _ = lookup(environ, envEager)
	c.Bulk, _ = lookup(environ, envBulk)
	c.Costs, _ = lookup(environ, envKept)
	if v, _ := lookup(environ, envLeases); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < -1 || n > mostLeases {
			return fmt.Errorf("%w: %s=%q: want -1 (none), 0 (as many as usual) or 1 to %d", ErrConfig, envLeases, v, mostLeases)
		}
		c.Leases = n
	}
	if v, _ := lookup(environ, envPercent); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return fmt.Errorf("%w: %s=%q: want 1 to 100", ErrConfig, envPercent, v)
		}
		c.EagerPercent = n
	}
	return nil
}

// protocols checks what is forced and gives it the engine's form.
func (c *Config) protocols() (e proto.Eager, b proto.Bulk, err error) {
	if e.Mode, err = eager.ParseMode(cmp.Or(c.Eager, defaultEager)); err != nil {
		return e, b, fmt.Errorf("%w: %s: %w", ErrConfig, envEager, err)
	}
	if c.Leases > mostLeases {
		return e, b, fmt.Errorf("%w: %s=%d: want at most %d", ErrConfig, envLeases, c.Leases, mostLeases)
	}
	if c.EagerPercent < 0 || c.EagerPercent > 100 {
		return e, b, fmt.Errorf("%w: %s=%d: want 1 to 100", ErrConfig, envPercent, c.EagerPercent)
	}
	e.Percent = c.EagerPercent
	if b, err = proto.ParseBulk(cmp.Or(c.Bulk, defaultBulk)); err != nil {
		return e, b, fmt.Errorf("%w: %s=%w", ErrConfig, envBulk, err)
	}
	return e, b, nil
}

// kept checks where costs are kept and gives that the engine's form.
func (c *Config) kept() (k proto.Kept, err error) {
	if k.Ledger, err = ledger.Open(c.Costs); err != nil {
		return k, fmt.Errorf("%w: %s=%q: %w", ErrConfig, envKept, c.Costs, err)
	}
	k.Now, k.Settings = time.Now, fmt.Sprintf("device %q, slowed by %v to %d bytes per second", c.Device, c.SoftLatency, c.SoftBandwidth)
	return k, nil
}

// sayUnkept says that costs were not kept, or could not be read.
func (w *World) sayUnkept() {
	if _, err := w.engine.Kept(); err != nil {
		w.say(fmt.Sprintf("warning: rank %d: the costs of transfers (%s): %v", w.Rank(), envKept, err))
	}
}
