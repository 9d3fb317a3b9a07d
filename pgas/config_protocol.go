package pgas

import (
	"cmp"
	"fmt"
	"strconv"

	"gopgas/eager"
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
