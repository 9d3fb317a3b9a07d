package sched

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/invariants"
)

// TestLingerLook: a request that comes soon after another is waited for anew, a single one is not.
func TestLingerLook(t *testing.T) {
	const soon, late = lingerSoon - 1, lingerSoon
	var l lingering
	now, performed := time.Hour, uint64(0)
	for i, c := range []struct {
		more  uint64
		after time.Duration
		lasts time.Duration // from now on
	}{
		{0, soon, 0},
		{1, soon, 0}, // the first of all
		{1, late, 0},
		{3, soon, lingerFor},
		{0, 10, lingerFor - 10},
		{0, lingerFor, 0},
		{1, soon - 10 - lingerFor, lingerFor},
		{1, late, 0},
		{1, 2 * late, 0},
		{1, soon, lingerFor},
	} {
		now += c.after
		performed += c.more
		require.Equal(t, c.lasts, max(0, l.look(performed, now)-now), "%d", i)
	}
}

// peer is a NIC over which requests come one behind another while busy.
type peer struct {
	told
	busy      bool
	performed uint64
}

func (p *peer) Performed() uint64 { return p.performed }

func (p *peer) progress() bool {
	if p.busy {
		p.performed++
	}
	return false
}

func lingerer(s *Sched) (p *peer, yields *int) {
	p, yields = &peer{busy: true}, new(int)
	s.yield = func() { *yields++ }
	s.SetProgress(p.progress, p)
	return p, yields
}

// slow makes steps until sp is past its spinning phase, and returns how many.
func slow(t *testing.T, sp *Spin) (steps int) {
	for ; !sp.Slept(); steps++ {
		require.NoError(t, sp.Step())
	}
	return steps
}

// lingering makes steps until sp lingers: where invariants are checked it stops at times.
func (p *peer) lingering(t *testing.T, sp *Spin) {
	slow(t, sp)
	for began := time.Now(); !sp.lingering; {
		require.NoError(t, sp.Step())
		require.Less(t, time.Since(began), 10*time.Second)
	}
}

// isTold requires that the NIC was told by turns that somebody polls without a pause, and that nobody does, and on at last.
func (p *peer) isTold(t *testing.T, on bool) {
	t.Helper()
	for i, said := range p.told {
		require.Equal(t, i%2 == 0, said == Steadily)
	}
	require.Equal(t, on, len(p.told)%2 == 1)
}

// TestLingers: a wait goes on without a pause as long as requests come, and has it told; then it yields and parks like others.
func TestLingers(t *testing.T) {
	s := Process(1)
	p, yields := lingerer(s)
	sp := s.Begin(t.Context(), What{Op: "test"}, nil)
	p.lingering(t, &sp)
	p.isTold(t, true)
	steady := func() bool { // while the system leaves this thread its processor
		before := *yields
		for began := time.Now(); time.Since(began) < 3*s.yields; {
			require.NoError(t, sp.Step())
		}
		return *yields == before && sp.lingering && len(s.Waits()) == 1 // it is listed like one that sleeps
	}
	if !invariants.Enabled { // else it stops at times
		for began := time.Now(); !steady(); {
			require.Less(t, time.Since(began), 10*time.Second)
		}
		require.False(t, sp.armed)
		p.isTold(t, true)
	}
	p.busy = false
	for sp.lingering {
		require.NoError(t, sp.Step())
	}
	p.isTold(t, false)
	for !sp.armed {
		require.NoError(t, sp.Step())
	}
	p.busy = true
	p.lingering(t, &sp)
	require.False(t, sp.armed, "nobody has to ring")
	require.Zero(t, s.bell.Load().sleepers.Load())
	sp.End()
	p.isTold(t, false)
	require.Empty(t, s.Waits())
}

// TestOneLingers: of the waits of a rank one lingers, and another one when that has ended.
func TestOneLingers(t *testing.T) {
	s := Process(1)
	p, _ := lingerer(s)
	first, second := s.Begin(t.Context(), What{Op: "first"}, nil), s.Begin(t.Context(), What{Op: "second"}, nil)
	p.lingering(t, &first)
	for range 1000 {
		require.NoError(t, second.Step())
		require.False(t, second.lingering)
		if second.armed {
			break
		}
	}
	first.End()
	p.lingering(t, &second)
	second.End()
	require.False(t, s.lingering.taken.Load())
}

// TestNobodyLingers where ranks share cores, or peers' requests take none of the rank's threads.
func TestNobodyLingers(t *testing.T) {
	for name, s := range map[string]*Sched{"busy": Process(1 << 20), "goroutine": Goroutine(1), "hardware": Process(1)} {
		t.Run(name, func(t *testing.T) {
			p, yields := lingerer(s)
			if name == "hardware" {
				s.SetProgress(p.progress, nil)
			}
			sp := s.Begin(t.Context(), What{Op: "test"}, nil)
			for !sp.armed {
				require.NoError(t, sp.Step())
				require.False(t, sp.lingering)
			}
			sp.End()
			require.NotZero(t, *yields)
			require.Empty(t, p.told)
		})
	}
}

// TestWarm: while requests come, waits whose callers do not poll do not spin first, and those whose callers do, do.
func TestWarm(t *testing.T) {
	s := Process(1)
	p, _ := lingerer(s)
	sp := s.Begin(t.Context(), What{Op: "test"}, nil)
	p.lingering(t, &sp)
	sp.End()
	warm := func(polls bool) (steps int) {
		s.lingering.until = s.Now() + time.Hour
		sp := s.Begin(t.Context(), What{Op: "test"}, nil)
		if polls {
			sp.Hushes(nil)
		}
		defer sp.End()
		return slow(t, &sp)
	}
	require.LessOrEqual(t, warm(false), 2)
	if !invariants.Enabled {
		require.Equal(t, s.spins+1, warm(true))
	}
}

// TestLingererGivesTurn: who lingers for long lets other goroutines have the processor, and has the NIC wake others meanwhile.
func TestLingererGivesTurn(t *testing.T) {
	s := Process(1)
	p, _ := lingerer(s)
	sp := s.Begin(t.Context(), What{Op: "test"}, nil)
	defer sp.End()
	p.lingering(t, &sp)
	gave, times := s.Gave(), len(p.told)
	for began := time.Now(); s.Gave() == gave || len(p.told) < times+2; {
		require.NoError(t, sp.Step())
		require.Less(t, time.Since(began), 10*time.Second)
	}
	p.isTold(t, sp.lingering)
}
