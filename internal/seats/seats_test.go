package seats

import (
	"sync"
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

func TestCoresOfSeats(t *testing.T) {
	n := Node{Cores: 6, Spare: []int{5, 7}}
	for seat, want := range map[Seat]int{{}: -1, {Has: true}: 5, {Has: true, Core: 1, Helpers: 2}: 7, {Has: true, Core: 2}: -1} {
		core, ok := n.CoreOf(seat)
		require.Equal(t, want >= 0, ok)
		require.True(t, !ok || core == want)
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

// TestTurn: one rank of a node has it, but for one that is gone; without shared memory each has its own.
func TestTurn(t *testing.T) {
	var words [3]atomic.Uint64
	places := []Place{{Turn: &words[0]}, {Turn: &words[1]}, {Turn: &words[2]}}
	alive := func(int) bool { return false }
	var boards []*Board
	for rank := range places {
		b := NewBoard(len(places), rank)
		require.True(t, b.Take(alive), "it is not open")
		b.Leave()
		b.Open(places)
		boards = append(boards, b)
	}
	require.True(t, boards[1].Take(alive))
	require.True(t, boards[1].Take(alive), "it has it")
	require.False(t, boards[2].Take(alive))
	boards[2].Leave()
	require.False(t, boards[0].Take(alive), "another one's leaving changes nothing")
	boards[1].Leave()
	require.True(t, boards[0].Take(alive))
	require.False(t, boards[2].Take(func(rank int) bool { require.Zero(t, rank); return false }))
	require.True(t, boards[2].Take(func(rank int) bool { return rank == 0 }))
	boards[0].Leave() // it was taken for gone, and comes late
	require.False(t, boards[1].Take(alive))
	boards[2].Close()
	require.True(t, boards[2].Take(alive))
}

func TestBoard(t *testing.T) {
	words := make([]atomic.Uint64, 6)
	var places []Place
	for i := range 3 {
		places = append(places, Place{Bytes: &words[2*i], Gap: &words[2*i+1]})
	}
	n := Node{Cores: 4, Seed: 1}
	var boards []*Board
	for rank, bytes := range []uint64{10, 30, 20} {
		b := NewBoard(3, rank)
		b.Post(Post{Bytes: 5})
		require.Equal(t, make([]Post, 3), b.Posts(), "it is not open")
		b.Open(places[:2])
		require.Equal(t, make([]Post, 3), b.Posts(), "a place is missing")
		b.Open(places)
		b.Post(Post{Bytes: bytes, Gap: Nanos(rank)})
		boards = append(boards, b)
	}
	require.Equal(t, []Post{{10, 0}, {30, 1}, {20, 2}}, boards[0].Posts())
	for rank, want := range []bool{false, true, false} {
		require.Equal(t, want, boards[rank].Seat(Conservative, n).Has)
	}
	helpers := 0
	for _, b := range boards {
		b.Close()
		b.Post(Post{Bytes: 99})
		if b.Seat(Conservative, n).Has {
			helpers++
		}
	}
	require.Equal(t, 1, helpers, "without posts all come to the same seats")
	require.Equal(t, uint64(10), words[0].Load())
}

// TestManyPostAndLook: ranks post and look while others do, and close their boards.
func TestManyPostAndLook(t *testing.T) {
	words := make([]atomic.Uint64, 8)
	var places []Place
	for i := range 4 {
		places = append(places, Place{Bytes: &words[2*i], Gap: &words[2*i+1]})
	}
	var wg sync.WaitGroup
	for rank := range 4 {
		b := NewBoard(4, rank)
		b.Open(places)
		wg.Go(func() {
			for i := range uint64(500) {
				b.Post(Post{Bytes: i})
				b.Seat(Auto, Node{Cores: 6})
			}
			b.Close()
		})
		wg.Go(func() {
			for range 500 {
				require.Len(t, b.Posts(), 4)
			}
		})
	}
	wg.Wait()
}

func TestSharing(t *testing.T) {
	require.Equal(t, 3*(4*ms+5*us), Sharing(3, 4*ms, 5*us))
	require.Zero(t, Sharing(1, 4*ms, 5*us), "a core of its own")
	require.Zero(t, Sharing(0, 4*ms, 5*us))
}
