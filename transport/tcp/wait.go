package tcp

import (
	"context"
	"time"

	"gopgas/transport"
)

// How somebody waits for the domain.
const (
	awake  int32 = iota
	asleep       // whatever is reported wakes him
	dozing       // what peers have sent does
)

// hasFor reports whether something was reported for which who waits so is to get up.
func (d *domain) hasFor(how int32) bool {
	if how == dozing {
		return d.cq.sent.Load() > 0
	}
	return d.cq.count.Load() > 0
}

func (d *domain) Wait(ctx context.Context) error {
	for {
		if some, err := d.sleep(ctx, asleep, 0); some || err != nil {
			return err
		}
	}
}

// WaitSolicited is Wait for what peers have sent, for so long at most, and reports whether there is some, or Wake was called.
func (d *domain) WaitSolicited(ctx context.Context, limit time.Duration) (some bool, err error) {
	some, err = d.sleep(ctx, dozing, limit)
	if !some && err == nil { // somebody has rung
		some, err = d.ready(ctx, dozing)
	}
	return some, err
}

// sleep returns at once if there is something, and reports that; else when somebody has rung, limit has passed, unless it is 0, or ctx has ended.
func (d *domain) sleep(ctx context.Context, how int32, limit time.Duration) (some bool, err error) {
	d.sleeping.Store(how)
	defer d.sleeping.Store(awake)
	// S2 of package sched: look once more after the announcement.
	if some, err := d.ready(ctx, how); some || err != nil {
		return some, err
	}
	switch done := ctx.Done(); {
	case limit != 0:
		d.naps.Listen(ctx, limit, d.bell)
	case done == nil:
		<-d.bell // half the price of a select
	default:
		select {
		case <-d.bell:
		case <-done:
		}
	}
	return false, nil
}

// ready reports whether there is something for who waits, or why he is to wait no longer.
func (d *domain) ready(ctx context.Context, how int32) (some bool, err error) {
	switch {
	case d.stop.Load():
		return false, transport.ErrClosed
	case d.woken.Swap(false), d.hasFor(how):
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	}
	return false, nil
}

func (d *domain) Wake() {
	d.woken.Store(true)
	d.wake()
	d.sched.Ring()
}

func (d *domain) wake() {
	if d.sleeping.Load() != awake {
		select {
		case d.bell <- struct{}{}:
		default:
		}
	}
}
