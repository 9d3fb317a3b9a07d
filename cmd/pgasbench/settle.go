package main

import (
	"context"
	"time"

	pgsync "gopgas/sync"
)

// How a row over a NIC begins: with some steps in which nothing is measured beside them, and before what is large with so many bytes, or a
// second, that measuring has begun.
const (
	settleSteps = 16
	settleLarge = 1 << 10
	settleBytes = 8 << 20
	settleTime  = time.Second
	settleMost  = 30 * time.Second
)

// settling is what comes before a row, until the library has measured what a NIC's transfers cost. It does so once in a job, when the first large ones are
// made, and takes a core for it; that is no part of what a row is about.
type settling struct {
	e           measures
	began, busy time.Time // something was measured last
	moved       int       // bytes
	quiet       int       // steps in a row
}

// measures is what an engine tells of its measuring.
type measures interface {
	Measuring() (now, over bool)
	HastenMeasuring() (done func())
}

func (b *bench) settling() settling {
	now := time.Now()
	return settling{e: b.w.Team().Engine(), began: now, busy: now}
}

// step notes that so many bytes have moved, and reports whether more have to.
func (s *settling) step(bytes int) bool {
	s.moved += bytes
	if now, over := s.e.Measuring(); now {
		s.quiet, s.busy = 0, time.Now()
	} else if over || s.moved > settleBytes {
		s.quiet++
	}
	return s.quiet < settleSteps && time.Since(s.busy) < settleTime && time.Since(s.began) < settleMost
}

// settles reports whether a row of so many bytes is one that settles first.
func (b *bench) settles(bytes int) bool {
	return b.w.Transport(b.peer) != "shm" && bytes >= settleLarge
}

// settle runs loop until nothing is measured beside it.
func (b *bench) settle(step, bytes int, loop func(n int) error) error {
	s := b.settling()
	defer s.e.HastenMeasuring()()
	for more := b.settles(bytes); more; more = s.step(step * bytes) {
		if err := loop(step); err != nil {
			return err
		}
	}
	return nil
}

// settleTogether has all ranks make a call until nothing is measured beside any of them.
func (b *bench) settleTogether(ctx context.Context, bytes int, call func(round int) error) error {
	s, more := b.settling(), b.settles(bytes)
	defer s.e.HastenMeasuring()()
	for round := 0; ; round++ {
		wanted, err := b.anybody(ctx, more)
		if err != nil || !wanted {
			return err
		}
		if err := call(round); err != nil {
			return err
		}
		more = s.step(bytes)
	}
}

// anybody reports whether something holds on any rank.
func (b *bench) anybody(ctx context.Context, holds bool) (bool, error) {
	ranks := make([]uint32, 1)
	if holds {
		ranks[0] = 1
	}
	err := pgsync.AllReduce(ctx, b.w.Team(), ranks, ranks, pgsync.Max)
	return ranks[0] != 0, err
}
