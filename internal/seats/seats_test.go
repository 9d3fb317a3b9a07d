package seats

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// us is a microsecond, ms a millisecond.
const us, ms = Nanos(1000), Nanos(1_000_000)

func posts(bytes ...uint64) []Post {
	var out []Post
	for _, b := range bytes {
		out = append(out, Post{Bytes: b, Gap: 10 * ms})
	}
	return out
}

func TestSeats(t *testing.T) {
	own := func(core int) Seat { return Seat{Has: true, Core: core, Helpers: 1} }
	shared := func(core, n int) Seat { return Seat{Has: true, Core: core, Helpers: n} }
	none := Seat{}
	for name, c := range map[string]struct {
		policy Policy
		cores  int
		posts  []Post
		want   []Seat
	}{
		"none":                     {None, 8, posts(1, 2), []Seat{none, none}},
		"no idle core":             {Aggressive, 4, posts(1, 2, 3, 4), []Seat{none, none, none, none}},
		"more ranks than cores":    {Aggressive, 2, posts(1, 2, 3), []Seat{none, none, none}},
		"unshared, conservative":   {Conservative, 4, posts(5, 9), []Seat{own(1), own(0)}},
		"unshared, aggressive":     {Aggressive, 4, posts(5, 9), []Seat{own(1), own(0)}},
		"unshared, auto":           {Auto, 2, posts(5), []Seat{own(0)}},
		"conservative, 6 on 8":     {Conservative, 8, posts(1, 6, 3, 5, 2, 4), []Seat{none, own(0), none, own(1), none, none}},
		"aggressive, 6 on 8":       {Aggressive, 8, posts(1, 6, 3, 5, 2, 4), []Seat{shared(0, 3), shared(1, 3), shared(0, 3), shared(1, 3), shared(0, 3), shared(1, 3)}},
		"aggressive, unevenly":     {Aggressive, 5, posts(1, 1, 1), []Seat{shared(0, 2), own(1), shared(0, 2)}},
		"auto on 2 cores, 4 ranks": {Auto, 2, posts(1, 1, 1, 1), []Seat{none, none, none, none}},
	} {
		t.Run(name, func(t *testing.T) {
			n := Node{Cores: c.cores, Slice: 1 * ms, Swap: 5 * us, Work: 100 * us, Seed: 3}
			require.Equal(t, c.want, Assign(c.policy, n, c.posts))
		})
	}
}

func TestTiesFallBySeed(t *testing.T) {
	won := map[int]bool{}
	for seed := range uint64(50) {
		n := Node{Cores: 5, Seed: seed}
		seats := Assign(Conservative, n, posts(7, 7, 7, 7))
		require.Equal(t, seats, Assign(Conservative, n, posts(7, 7, 7, 7)), "all helpers agree")
		for rank, s := range seats {
			if s.Has {
				won[rank] = true
			}
		}
	}
	require.Len(t, won, 4)
}

func TestAutoGoesByWhatIsPosted(t *testing.T) {
	n := Node{Cores: 8, Slice: 4 * ms, Swap: 5 * us, Work: 100 * us}
	helpers := func(gap Nanos) (count int) {
		p := posts(1, 2, 3, 4, 5, 6)
		for i := range p {
			p[i].Gap = gap
		}
		for _, s := range Assign(Auto, n, p) {
			if s.Has {
				count++
			}
		}
		return count
	}
	require.Equal(t, 6, helpers(1000*ms), "long phases: all save something, though they share")
	require.Equal(t, 2, helpers(5*ms), "3 · 4 ms of others' slices would miss every deadline")
	require.Equal(t, 2, helpers(0), "nothing is known: as the authors prefer")
}

func TestPolicyNames(t *testing.T) {
	for i := None; i <= Auto; i++ {
		got, err := Parse(i.String())
		require.NoError(t, err)
		require.Equal(t, i, got)
	}
	_, err := Parse("greedy")
	require.ErrorContains(t, err, "conservative")
}

func TestBoard(t *testing.T) {
	words := make([]atomic.Uint64, 3*BoardWords)
	for rank, bytes := range []uint64{10, 30, 20} {
		NewBoard(words, rank).Post(Post{Bytes: bytes, Gap: Nanos(rank)})
	}
	require.Equal(t, []Post{{10, 0}, {30, 1}, {20, 2}}, NewBoard(words, 0).Posts(nil))
	n := Node{Cores: 4}
	for rank, want := range []bool{false, true, false} {
		require.Equal(t, want, NewBoard(words, rank).Seat(Conservative, n).Has)
	}
}

func TestSharing(t *testing.T) {
	require.Equal(t, 3*(4*ms+5*us), Sharing(3, 4*ms, 5*us))
	require.Zero(t, Sharing(1, 4*ms, 5*us), "a core of its own")
	require.Zero(t, Sharing(0, 4*ms, 5*us))
}
