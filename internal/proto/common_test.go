package proto

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/transport/shm"
)

// exposed is an exposure of rank me of members, all of whom map each other, of these parts.
func exposed(me int, local mem.Range, of map[int]mem.Range) *Exposure {
	xp := &Exposure{e: &Engine{Rank: me}, Local: local}
	for rank := range 8 {
		if r, ok := of[rank]; ok {
			xp.Of = append(xp.Of, Remote{Rank: rank, Bytes: r.Bytes, raddr: r.Addr(), Mapped: r})
		}
	}
	return xp
}

// TestCommons: memory is found that lies in one part, by those and only those who have mapped it.
func TestCommons(t *testing.T) {
	var c commons
	words := mem.Of(make([]uint64, 64))
	at := func(off, n int) mem.Range { return words.Slice(off, n) }
	first := exposed(1, at(64, 64), map[int]mem.Range{0: at(0, 64), 1: at(64, 64), 5: at(256, 8)})
	next := exposed(1, at(128, 64), map[int]mem.Range{1: at(128, 64), 5: at(192, 64)})
	for _, xp := range []*Exposure{next, first, exposed(1, mem.Range{}, map[int]mem.Range{0: at(320, 8), 1: {}})} {
		c.meet(xp)
		c.join(xp)
	}
	home := func(r mem.Range, ranks ...int) uint64 {
		addr, ok := c.home(r, ranks)
		require.Equal(t, ok, addr != 0)
		return addr
	}
	require.Equal(t, at(64, 1).Addr(), home(at(64, 64), 0, 1))
	require.Equal(t, at(64, 1).Addr(), home(at(120, 8), 5))
	require.Equal(t, at(128, 1).Addr(), home(at(128, 8), 5, 1))
	require.Zero(t, home(at(120, 16), 1), "it lies in two parts")
	require.Zero(t, home(at(128, 8), 0), "rank 0 has not mapped it")
	require.Zero(t, home(at(56, 8), 0), "it is another rank's")
	require.Zero(t, home(at(192, 8), 5), "it lies behind all")
	require.Zero(t, home(at(184, 16), 5), "it goes beyond the last")

	lies, ok := c.at(5, at(192, 1).Addr(), at(200, 1).Addr())
	require.True(t, ok)
	require.Equal(t, at(200, 56), lies)
	_, ok = c.at(5, at(192, 1).Addr(), at(192, 1).Addr()+65)
	require.False(t, ok, "it lies behind the part")
	_, ok = c.at(5, at(192, 1).Addr(), at(184, 1).Addr())
	require.False(t, ok, "it lies before the part")
	_, ok = c.at(1, at(64, 1).Addr(), at(64, 1).Addr())
	require.False(t, ok, "it is this rank's own")

	c.leave(first)
	c.leave(first)
	require.Zero(t, home(at(64, 8), 1))
	require.NotZero(t, home(at(128, 8), 1))
	_, ok = c.at(0, at(0, 1).Addr(), at(0, 1).Addr())
	require.False(t, ok)
}

// TestCommonsAtTheSamePlace: what a rank exposes where it exposed something before is the new memory, also if this rank gives the old one up later.
func TestCommonsAtTheSamePlace(t *testing.T) {
	var c commons
	was, is, mine := mem.Of(make([]uint64, 8)), mem.Of(make([]uint64, 8)), mem.Of(make([]uint64, 8))
	old := exposed(0, mine.Slice(0, 8), map[int]mem.Range{0: mine.Slice(0, 8), 3: was})
	again := exposed(0, mine.Slice(8, 8), map[int]mem.Range{0: mine.Slice(8, 8), 3: is})
	again.Of[1].raddr = was.Addr() // where rank 3 has it
	for _, xp := range []*Exposure{old, again} {
		c.meet(xp)
		c.join(xp)
	}
	for range 2 {
		lies, ok := c.at(3, was.Addr(), was.Addr())
		require.True(t, ok)
		require.Equal(t, is, lies)
		c.leave(old)
	}
	c.leave(again)
	_, ok := c.at(3, was.Addr(), was.Addr())
	require.False(t, ok)
}

// TestCommonsKeptBeside: an exposure that has joined nothing takes nothing out, of whatever memory it is.
func TestCommonsKeptBeside(t *testing.T) {
	var c commons
	mine, theirs := mem.Of(make([]uint64, 8)), mem.Of(make([]uint64, 8))
	joined := exposed(0, mine, map[int]mem.Range{0: mine, 3: theirs})
	beside := exposed(0, mine, map[int]mem.Range{0: mine, 3: theirs})
	c.meet(joined)
	c.join(joined)
	c.leave(beside)
	_, ok := c.home(mine, []int{0, 3})
	require.True(t, ok)
	_, ok = c.at(3, theirs.Addr(), theirs.Addr())
	require.True(t, ok)
}

// late is a seat whose owner hears of the last of so many exchanges when it is told to go on.
type late struct {
	seat
	left int
	goOn <-chan struct{}
}

func (l *late) Exchange(ctx context.Context, card []byte) ([][]byte, error) {
	cards, err := l.seat.Exchange(ctx, card)
	if l.left--; l.left == 0 {
		<-l.goOn
	}
	return cards, err
}

// TestCommonsAtOnce: what a rank offers as soon as it knows that all have mapped it, all find, also who does not know that yet.
func TestCommonsAtOnce(t *testing.T) {
	mappers, m, goOn := shm.NewGroup(2, shm.Config{}), newMeeting(2), make(chan struct{})
	var e [2]*Engine
	for r := range e {
		e[r] = New(Config{Rank: r, Size: 2, Sched: sched.Goroutine(2), Peers: peers.New(2), Nodes: make([]int, 2), Mapper: mappers[r]})
	}
	ended := make(chan error)
	go func() {
		xp, err := e[1].Allocate(t.Context(), &late{seat{m, 1}, 2, goOn}, []int{0, 1}, 4096)
		ended <- errors.Join(err, xp.Free())
	}()
	xp, err := e[0].Allocate(t.Context(), seat{m, 0}, []int{0, 1}, 4096)
	require.NoError(t, err)
	var o Offer
	require.True(t, e[0].OfferMapped(&o, xp.Local, []int{0, 1}))
	r, ok := e[1].OfferedMapped(0, o.Addr, o.Key)
	close(goOn)
	require.True(t, ok)
	require.Equal(t, xp.Local, r.Mapped)
	require.NoError(t, errors.Join(<-ended, xp.Free()))
}
