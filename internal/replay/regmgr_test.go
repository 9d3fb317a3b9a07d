package replay

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/trace"
	"gopgas/regmgr"
	"gopgas/transport"
)

// willing registers whatever it is asked to.
type willing struct{ last uint64 }

func (w *willing) Register(mem.Range, transport.Access) (transport.Region, error) {
	w.last++
	return transport.Region{ID: w.last, LKey: w.last}, nil
}

func (w *willing) Deregister(transport.Region) error { return nil }

// outcome is what both caches count.
type outcome struct {
	Hits, Misses, Copies, Fallback, Registrations, Deregistrations, Evictions uint64
}

// library performs a trace's transfers with the library's own cache, as its engine does.
type library struct {
	m     *regmgr.Manager
	base  mem.Range
	open  []inFlight
	count outcome
}

type inFlight struct {
	end   int64
	holds []*regmgr.Hold
}

// until completes the transfers that are over.
func (l *library) until(now int64) {
	for len(l.open) > 0 && l.open[0].end <= now {
		for _, h := range l.open[0].holds {
			l.m.Release(h)
		}
		l.open = l.open[1:]
	}
}

// transfer begins one.
func (l *library) transfer(e *trace.Event) error {
	plan := l.m.Plan(int(e.Bytes))
	if !plan.Register {
		if e.Bytes >= regmgr.LeastRegistered {
			l.count.Copies++
		}
		return nil
	}
	at := inFlight{end: e.At + e.Took}
	off := int(e.Addr - l.base.Addr())
	for done := 0; done < int(e.Bytes); done += plan.Fragment {
		if len(at.holds) == plan.Depth {
			l.m.Release(at.holds[0])
			at.holds = at.holds[1:]
		}
		h := new(regmgr.Hold)
		err := l.m.Acquire(h, regmgr.Request{Mem: l.base.Slice(off+done, min(plan.Fragment, int(e.Bytes)-done))})
		if err != nil {
			for _, h := range at.holds {
				l.m.Release(h)
			}
			if !errors.Is(err, regmgr.ErrCopy) {
				return err
			}
			l.count.Copies++
			l.count.Fallback++
			return nil
		}
		at.holds = append(at.holds, h)
	}
	i, _ := slices.BinarySearchFunc(l.open, at, func(a, b inFlight) int { return cmp.Compare(a.end, b.end) })
	l.open = slices.Insert(l.open, i, at)
	return nil
}

// throughLibrary replays a trace with regmgr and returns what it counts, and at which event it failed.
func throughLibrary(t *testing.T, base mem.Range, events []trace.Event, policy Policy, limit int64) (outcome, int) {
	p, err := regmgr.ParsePolicy(policy.String())
	require.NoError(t, err)
	m, err := regmgr.New(regmgr.Config{
		Policy: p, Registrar: new(willing), Sched: sched.Goroutine(2), Quiet: true, Bytes: limit,
		HeapBytes: 1 << 40, // a replay does not know whose memory it is
	})
	require.NoError(t, err)
	l := &library{m: m, base: base}
	failed := len(events)
	for i := range events {
		l.until(events[i].At)
		if err := l.transfer(&events[i]); err != nil {
			require.ErrorIs(t, err, regmgr.ErrBudget)
			failed = i
			break
		}
	}
	l.until(1 << 62)
	s := m.Stats()
	l.count.Hits, l.count.Misses = s.Hits, s.MissCold+s.MissPartial+s.MissRights
	l.count.Registrations, l.count.Deregistrations, l.count.Evictions = s.Registrations, s.Deregistrations, s.Evicted
	require.NoError(t, m.Close())
	return l.count, failed
}

// flyingBytes is what a transfer has that others overtake.
const flyingBytes = 128 << 10

// mixed are transfers from a few buffers. flying: they are under way together, and overtake each other; else one ends before the
// next. nested: buffers overlap and lie in each other. Then several registrations may serve one transfer, and which of them is
// used is chance. So is which of two is older that end between the beginnings of two others: no two do.
func mixed(base mem.Range, seed uint64, flying, nested bool) (events []trace.Event) {
	rng := rand.New(rand.NewPCG(seed, 7))
	type buffer struct{ off, bytes uint64 }
	var all []buffer
	sizes := []uint64{8 << 10, 16 << 10, 40<<10 + 24, 256 << 10, 1 << 20, 3<<19 + 8, 5 << 19}
	if flying { // all register, and find room
		sizes = []uint64{flyingBytes}
	}
	var order []int // in which four of them end
	next, buffers := uint64(0), 14
	if flying { // as few as make the order of their ends count
		buffers = 12
	}
	for range buffers {
		n := sizes[rng.IntN(len(sizes))]
		if nested {
			next = rng.Uint64N(uint64(base.Bytes)-n) &^ 4095
		}
		all = append(all, buffer{next, n})
		next += n + 100
	}
	for i := range 250 {
		b := all[min(rng.IntN(len(all)), rng.IntN(len(all)))]
		if nested && rng.IntN(4) == 0 { // a part of it
			b.bytes = max(1, b.bytes/2)
		}
		end := i
		if flying {
			if i%4 == 0 {
				order = rng.Perm(4)
			}
			end = i - i%4 + 3 + order[i%4]
		}
		if flying {
			b = all[rng.IntN(len(all))]
		}
		events = append(events, trace.Event{
			At: int64(i) * 1000, Took: int64(end-i)*1000 + 500, Addr: base.Addr() + b.off, Bytes: b.bytes, Peer: -1, Kind: trace.Put,
		})
	}
	return events
}

// TestCacheAgreesWithTheLibrary: replays have a cache of their own, which takes virtual time. Under every policy without a
// helper it must decide as regmgr does, with room for everything and without. Where several registrations serve a transfer the
// replay takes the one of just its bytes, regmgr the largest or the one used last: that changes which of them ages, no more.
func TestCacheAgreesWithTheLibrary(t *testing.T) {
	base := mem.Of(make([]byte, 40<<20))
	for _, p := range []Policy{LeavePinned, LeavePinnedNoEvict, OnDemand, Bounce, Pipelined, PipelinedLeavePinned} {
		for seed, limit := range []int64{0, 6 << 20, 3 << 20, 2 << 20} {
			for _, flying := range []bool{false, true} {
				if flying && limit > 0 {
					limit = int64(6+seed) * flyingBytes
				}
				name := fmt.Sprintf("%s, limit %d, together %t", p, limit, flying)
				events := mixed(base, uint64(seed), flying, limit == 0)
				theirs, failed := throughLibrary(t, base, events, p, limit)
				require.False(t, flying && theirs.Fallback > 0, name)
				f := func(n int) []*trace.File {
					return []*trace.File{{Head: trace.Head{Ranks: 1}, Events: events[:n]}}
				}
				c := Config{Policy: p, Limit: limit, Costs: costs(t, "free")}
				if failed < len(events) {
					_, err := Run(f(failed+1), c)
					require.ErrorAs(t, err, new(*LimitError), name)
				}
				ours := run(t, f(failed), c)
				got := outcome{ours.Hits + ours.Late, ours.First + ours.Again, ours.Copies, ours.Fallback, ours.Registrations, ours.Deregistrations, ours.Evictions}
				if p == Pipelined || p == PipelinedLeavePinned { // there the replay counts transfers, the library fragments
					theirs.Hits, theirs.Misses = got.Hits, got.Misses
				}
				if p == PipelinedLeavePinned && limit > 0 && !flying { // fragments of one transfer end together, and which is older is chance
					require.InDelta(t, theirs.Registrations, got.Registrations, 0.1*float64(theirs.Registrations), name)
					require.InDelta(t, theirs.Evictions, got.Evictions, 0.1*float64(theirs.Evictions), name)
					theirs.Registrations, theirs.Deregistrations, theirs.Evictions = got.Registrations, got.Deregistrations, got.Evictions
				}
				require.Equal(t, theirs, got, name)
			}
		}
	}
}
