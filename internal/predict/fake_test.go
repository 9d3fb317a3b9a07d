package predict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/callsite"
)

// fake is a cache whose registrations take no time but are counted, with a limit in regions.
type fake struct {
	held    map[Region]bool
	refs    map[Region]int
	gone    map[Region]bool
	expect  map[Region]Nanos
	limit   int
	refuse  error
	entries int // what Len says; -1: the regions held
}

func newFake() *fake {
	return &fake{
		held: map[Region]bool{}, refs: map[Region]int{}, gone: map[Region]bool{}, expect: map[Region]Nanos{}, limit: 1 << 30,
	}
}

func (f *fake) Registered(r Region) bool { return f.held[r] }

func (f *fake) Register(r Region) error {
	switch {
	case f.gone[r]:
		return ErrGone
	case f.refuse != nil:
		return f.refuse
	case len(f.held) >= f.limit:
		return ErrLimit
	}
	f.held[r] = true
	return nil
}

func (f *fake) Deregister(r Region) bool {
	if !f.held[r] || f.refs[r] > 0 {
		return false
	}
	delete(f.held, r)
	return true
}

func (f *fake) Expect(r Region, at Nanos) { f.expect[r] = at }

func (f *fake) Len() int {
	if f.entries >= 0 {
		return f.entries
	}
	return len(f.held)
}

// demand is what the critical path does: it registers where that is needed and reports a hit.
func (f *fake) demand(r Region) bool {
	hit := f.held[r]
	f.held[r] = true
	return hit
}

// bench drives a predictor in virtual time in which work takes none.
type bench struct {
	t     *testing.T
	p     *Predictor
	cache *fake
	dq    *Queue
	now   Nanos
	ctx   *Stream
	acts  []Act
	hits  []bool
}

func newBench(t *testing.T, c Config) *bench {
	b := &bench{t: t, cache: newFake(), dq: NewQueue(0), ctx: NewStream(c.withDefaults().Window)}
	b.p = New(c, b.cache, b.dq)
	return b
}

// until runs the helper up to the time.
func (b *bench) until(at Nanos) *bench {
	for range 100_000 {
		act, wake := b.p.Step(b.now)
		b.p.check(b.t)
		if act != Slept {
			b.acts = append(b.acts, act)
		}
		if wake > at {
			b.now = at
			return b
		}
		b.now = max(b.now, wake)
	}
	require.Fail(b.t, "the helper does not come to rest", "at %d", b.now)
	return b
}

// call is a whole use at the current time of a call site (pc) with the buffer, which is its own region.
func (b *bench) call(pc uintptr, buf uint64, pages uint32) *bench {
	u := Use{At: b.now, Region: Region(buf), Buf: buf, Pages: pages, Stack: callsite.Stack{pc}}
	b.ctx.Note(&u, MakeCall(1, buf), 0)
	b.hits = append(b.hits, b.cache.demand(u.Region))
	require.True(b.t, b.dq.Put(&u))
	return b
}

// took returns and clears what the helper has done.
func (b *bench) took() []Act {
	acts := b.acts
	b.acts = nil
	return acts
}

// check asserts the invariants of the RQ, the vigil and the regions.
func (p *Predictor) check(t *testing.T) {
	t.Helper()
	seen := map[*site]bool{}
	for i, s := range p.rq {
		require.False(t, seen[s], "P2")
		seen[s] = true
		require.Equal(t, queued, s.state)
		require.LessOrEqual(t, s.deadline, s.due, "P3")
		require.Contains(t, p.table.regions[s.region.id].sites, s)
		if i > 0 {
			require.LessOrEqual(t, p.rq[i-1].deadline, s.deadline, "P3")
		}
	}
	for i, s := range p.vigil {
		require.False(t, seen[s], "P2")
		seen[s] = true
		require.Equal(t, awaited, s.state)
		if i > 0 {
			require.LessOrEqual(t, p.vigil[i-1].expiry, s.expiry)
		}
	}
	for id, r := range p.table.regions {
		require.Equal(t, id, r.id)
		require.NotEmpty(t, r.sites)
		for _, s := range r.sites {
			require.True(t, seen[s], "a site that waits for nothing")
			require.Same(t, r, s.region)
			require.NotEqual(t, Never, p.cache.(interface{ when(Region) Nanos }).when(id))
		}
	}
}

func (f *fake) when(r Region) Nanos { return f.expect[r] }
