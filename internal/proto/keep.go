package proto

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"time"

	"gopgas/internal/ledger"
	"gopgas/internal/prices"
)

// Kept is where what transfers cost is kept for later jobs on machines of this kind. The zero Kept keeps nothing.
type Kept struct {
	Ledger   ledger.Ledger
	Settings string // what the NIC was told that it does not tell itself
	Now      func() time.Time
}

// kept is what has become of that.
type kept struct {
	when time.Time // when another job has measured; zero: none has
	err  error     // why that is not known, or what this one has measured will not be
}

// kind tells apart the jobs that have costs of their own.
func (n *device) kind() string {
	ranks, _ := n.e.here()
	c := &n.e.config
	return fmt.Sprintf("%s, shared by more ranks: %v; NIC %s; %s; eager: %v", ledger.Machine(), ranks > runtime.NumCPU(), n.lookalikes(), c.Kept.Settings, c.Eager.Mode)
}

// keeps reports whether anything is kept.
func (n *device) keeps() bool { return n.e.config.Kept.Ledger.Keeps() && !n.e.Sched.Virtual() }

// recall begins to decide by what an earlier job has measured, if that is known: then nothing is measured. Nobody uses the NIC yet.
func (n *device) recall() {
	c := &n.e.config
	if !n.keeps() {
		return
	}
	sheet, when, err := c.Kept.Ledger.Read(c.NICName, n.kind())
	if err == nil && sheet == nil {
		return
	}
	var p *prices.Prices
	if err == nil {
		p, err = prices.FromSheet(n.machine(), sheet)
	}
	if err == nil {
		_, err = n.chooserOf(p)
	}
	if err != nil {
		n.gauge.kept.Store(&kept{err: fmt.Errorf("what an earlier job has kept cannot be used: %w", err)}) // what this one measures goes to its place
		return
	}
	n.gauge.begun.Store(true)
	n.gauge.kept.Store(&kept{when: when})
	n.measured(p, nil)
}

// keep keeps what this rank has measured, if it is the first of its node. It does not hold up the program.
func (n *device) keep(p *prices.Prices) {
	c := &n.e.config
	if !n.keeps() || n.e.first() != n.e.Rank || !p.Measured {
		return
	}
	sheet, err := p.Sheet()
	if err == nil {
		err = c.Kept.Ledger.Write(c.NICName, n.kind(), sheet, c.Kept.Now())
	}
	if err != nil {
		n.gauge.kept.Store(&kept{err: fmt.Errorf("what was measured cannot be kept: %w", err)})
	} else if k := n.gauge.kept.Load(); k != nil && k.err != nil {
		n.gauge.kept.Store(&kept{})
	}
}

// AwaitKept returns when what this rank is measuring, if it is, to keep it, has been, or ctx has ended: a job that is over sooner would measure for nothing, and so would the
// next one. That takes a second at most, on a machine that is not busy.
func (e *Engine) AwaitKept(ctx context.Context) {
	n := e.nic()
	if n == nil || !n.keeps() {
		return
	}
	defer n.hasten()()
	for now, _ := e.Measuring(); now && e.Sched.Sleep(ctx, turnPause) == nil && !n.Closed(); {
		now, _ = e.Measuring()
	}
}

// Kept returns when the costs of transfers were measured that an earlier job has kept and this one goes by, which is zero where there are none, and what has
// gone wrong with that.
func (e *Engine) Kept() (time.Time, error) {
	n := e.nic()
	if n == nil {
		return time.Time{}, nil
	}
	k := cmp.Or(n.gauge.kept.Load(), &kept{})
	return k.when, k.err
}
