package proto

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// gated is a NIC that has no room for long writes while it is shut.
type gated struct {
	transport.Domain
	shut atomic.Bool
}

func (g *gated) Post(ops []transport.Op) (int, error) {
	for i := range ops {
		if ops[i].Kind == transport.OpWrite && ops[i].SGE[0].Mem.Bytes > nic.ScratchBytes && g.shut.Load() {
			return g.Domain.Post(ops[:i])
		}
	}
	return g.Domain.Post(ops)
}

// TestCrowdBesidePipesIntoBuckets: pipes that have all buckets that may be held come to their end, and give them back, though
// others who wait for buckets have all pieces.
func TestCrowdBesidePipesIntoBuckets(t *testing.T) {
	const unit, share = 32 << 10, 48 // of three quarters of what may be registered for this
	var gate *gated
	tm := newTeamWith(t, 2, pipedBytes, transporttest.FabricConfig{MaxPinned: pipedPins},
		func(d transport.Domain) transport.Domain { gate = &gated{Domain: d}; return gate }, func(c *Config) {
			forcedBulk(t, "superpipe", 1000)(c)
			c.Registration.Bytes = 2 << 20
		})
	e, to := tm.e[0], &tm.of[0][1]
	n := e.nic()
	require.NoError(t, e.FixBuckets(unit))
	require.EqualValues(t, share, n.hoses.Budget().Share)
	gate.shut.Store(true)
	var wg sync.WaitGroup
	const putters, others, small, apart = 2, 2 * nic.Pieces, 8 << 20, 8 << 10
	errs := make([]error, putters+others)
	src := filled(share * unit * 3 / 4)
	for i := range putters { // each has claims on two quarters of the share, and waits for the first
		wg.Go(func() {
			h, err := e.PutNB(to, i*4<<20, src)
			errs[i] = errors.Join(err, h.Wait(context.Background()))
		})
	}
	require.Eventually(t, func() bool {
		held := n.flights.Levels().Flights == 2*putters
		for i := range putters {
			held = held && n.hoses.Held(to.hosed, to.raddr+uint64(i*4<<20+share/2*unit-unit), 8)
		}
		return held
	}, 30*time.Second, time.Millisecond)
	for i := range others {
		wg.Go(func() {
			word := [1]uint64{uint64(i)}
			errs[putters+i] = e.Put(to, small+i*apart, mem.Of(word[:]))
		})
	}
	require.Eventually(t, func() bool {
		id, ok := n.TryAcquire(1, false)
		if ok {
			n.Abandon(id)
		}
		return !ok
	}, 30*time.Second, time.Millisecond)
	gate.shut.Store(false)
	n.Domain.Wake()
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(20 * time.Second):
		t.Fatal("those who wait for buckets and those who have them wait for each other")
	}
	require.NoError(t, errors.Join(errs...))
	require.NoError(t, e.Flush(to))
	for i := range putters {
		require.Equal(t, src.Data(), tm.mem[1].Slice(i*4<<20, src.Bytes).Data())
	}
	for i := range others {
		require.EqualValues(t, i, tm.mem[1].Word64(small+i*apart).Load())
	}
	tm.freeAll(t)
}

// TestNoTransferBesideBuckets: who waits for a transfer keeps no buckets from those who have one.
func TestNoTransferBesideBuckets(t *testing.T) {
	const ranks, unit, share, far = 5, 32 << 10, 12, 4 << 20 // of three quarters of what may be registered for this, by four
	tm := newTeamWith(t, ranks, tightBytes, transporttest.FabricConfig{MaxPinned: tightPins}, nil, func(c *Config) {
		forcedBulk(t, "register", 1000)(c)
		c.Registration.Bytes = 2 << 20
	})
	e, to := tm.e[0], &tm.of[0][1]
	n := e.nic()
	require.NoError(t, e.FixBuckets(unit))
	require.EqualValues(t, share, n.hoses.Budget().Share)
	taken := make([]Handle, nic.Pieces)
	for i := range taken {
		var ok bool
		taken[i], ok = n.TryBegin("test", 1)
		require.True(t, ok)
	}
	var wg sync.WaitGroup
	var errs [2]error
	var src [2]mem.Range
	for i := range src {
		src[i] = filled(share / 2 * unit)
		wg.Go(func() {
			h, err := e.PutNB(to, i*1<<20, src[i])
			errs[i] = errors.Join(err, h.Wait(context.Background()))
		})
	}
	require.Eventually(t, func() bool {
		for i := range src {
			if !n.hoses.Held(to.hosed, to.raddr+uint64(i*1<<20), 8) {
				return false
			}
		}
		return len(e.Sched.Waits()) == len(src)
	}, 30*time.Second, time.Millisecond)
	over := make(chan error)
	go func() {
		word := [1]uint64{7}
		over <- e.Put(to, far, mem.Of(word[:]))
	}()
	select {
	case err := <-over:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("who waits for a transfer has all buckets")
	}
	for _, h := range taken {
		n.PartDone(h, nil)
	}
	n.Domain.Wake()
	wg.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	require.NoError(t, e.Flush(to))
	require.EqualValues(t, 7, tm.mem[1].Word64(far).Load())
	for i := range src {
		require.Equal(t, src[i].Data(), tm.mem[1].Slice(i*1<<20, src[i].Bytes).Data())
	}
	tm.freeAll(t)
}
