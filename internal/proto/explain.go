package proto

import (
	"context"
	"fmt"
	"math"

	"gopgas/eager"
	"gopgas/internal/prices"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/transport"
)

// Estimates measures the costs of this machine and NIC if that has not happened, and returns what each protocol that can
// carry out the transfer q would cost: direct as if q's memory were registered, the others as if it were not. It may take
// some tenths of a second.
func (e *Engine) Estimates(q selector.Query) ([]prices.Estimate, error) {
	n := e.nic()
	if n == nil {
		return nil, fmt.Errorf("estimate transfers: no NIC is in use: %w", transport.ErrUnsupported)
	}
	if err := n.measureNow(); err != nil {
		return nil, fmt.Errorf("estimate transfers: %w", err)
	}
	p := n.prices()
	if p.Why != nil {
		return nil, p.Why
	}
	return p.Estimates(q), nil
}

// Measured reports whether the costs have been measured, or cannot be: some large transfers to a rank have them measured, and later
// ones with that rank.
func (e *Engine) Measured() bool {
	n := e.nic()
	return n == nil || n.e.Sched.Virtual() || n.gauge.over.Load() && (n.prices().Why != nil || n.gauge.peer.Load() == peerDone)
}

// Measuring reports whether costs are being measured now, beside the program: on a core that its transfers may want; and whether those of
// this rank's NIC have been.
func (e *Engine) Measuring() (now, over bool) {
	n := e.nic()
	if n == nil {
		return false, true
	}
	over = n.gauge.over.Load()
	return n.gauge.begun.Load() && !over || n.gauge.peer.Load() == peerMeasuring, over
}

// HastenMeasuring has costs measured without a rest, whatever the program does meanwhile, until done is called: by who waits for them before his own work begins.
func (e *Engine) HastenMeasuring() (done func()) {
	if n := e.nic(); n != nil {
		return n.hasten()
	}
	return func() {}
}

// SmallCosts returns what small puts, or gets, cost on this machine and NIC, as it was measured; nil: nothing has been.
func (e *Engine) SmallCosts(get bool) eager.Costs {
	n := e.nic()
	switch {
	case n == nil:
		return nil
	case get:
		return n.prices().Small[1]
	default:
		return n.prices().Small[0]
	}
}

// Trim gives up what is registered of this rank's memory and not in use, so that its next transfer is like a first one. It is for who compares
// protocols.
func (e *Engine) Trim() {
	if n := e.nic(); n != nil {
		n.direct.reg.Trim(math.MaxInt64)
	}
}

// Protocols opens the NIC of an engine, measures it if it can be, and returns what is chosen for transfers to memory that
// the target has registered. measured is an error where nothing was measured: the rows are then those of published
// constants.
func (e *Engine) Protocols(ctx context.Context) (rows []prices.Row, measured, err error) {
	if err := e.openNIC(ctx); err != nil {
		return nil, nil, err
	}
	n := e.nic()
	if n == nil {
		return nil, nil, fmt.Errorf("choose protocols: there is no NIC: %w", transport.ErrUnsupported)
	}
	n.Learn(e.Rank, n.Domain.Address())
	if err := n.measureNow(); err != nil {
		return nil, nil, err
	}
	p := n.prices()
	rows = append(p.Rows(), prices.Row{Case: "neither end registered", Sizes: n.wayText()})
	return rows, p.Why, nil
}

// wayText tells what carries large transfers neither end of which is registered.
func (n *device) wayText() string {
	if w := n.flights.Way(); w != superpipe.WayNone {
		return "lease: superpipe into workspace, told by " + w.String()
	}
	return "message"
}
