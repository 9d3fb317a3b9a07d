package agree

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// team returns the tables of n members whose blocks are mapped by all.
func team(n int) []*Table {
	const words = 64
	tables, of := make([]*Table, n), make([]proto.Remote, n)
	ranks := make([]int, n)
	for m := range n {
		ranks[m] = m
		block := mem.Of(make([]uint64, (words+WordsBytes+SetBytes(n))/8))
		of[m] = proto.Remote{Rank: m, Bytes: block.Bytes, Mapped: block}
	}
	for m := range n {
		e := proto.New(proto.Config{Rank: m, Size: n, Sched: sched.Goroutine(n), Peers: peers.New(n), Nodes: make([]int, n)})
		tables[m] = &Table{
			Engine: e, Ranks: ranks, Me: m, Peers: of, Local: of[m].Mapped, Words: words, Set: words + WordsBytes,
			Quit: func() bool { return false },
		}
	}
	return tables
}

// TestAgree: whoever is dead, and whenever that becomes known to whom, all others return the same (A1), and a vote against is not lost.
func TestAgree(t *testing.T) {
	for _, c := range []struct {
		n, against int // the member that votes no; -1: none
		dead       []int
	}{
		{1, -1, nil},
		{2, -1, nil},
		{3, 1, nil},
		{3, -1, []int{0}},
		{4, 3, []int{0, 1}},
		{5, -1, []int{2, 4}},
		{65, 64, []int{0, 1, 63}},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			tables := team(c.n)
			isDead := make([]bool, c.n)
			for _, d := range c.dead {
				isDead[d] = true
			}
			for epoch := uint64(1); epoch <= 3; epoch++ {
				verdicts, errs := make([]Verdict, c.n), make([]error, c.n)
				var wg sync.WaitGroup
				for m, x := range tables {
					if isDead[m] {
						continue
					}
					wg.Go(func() { verdicts[m], errs[m] = x.Agree(t.Context(), m != c.against) })
				}
				// The first agreement is under way when the news comes, in an order of its own to each.
				for m, x := range tables {
					for _, i := range rand.New(rand.NewPCG(uint64(m), 1)).Perm(len(c.dead)) {
						x.Engine.Peers.MarkGone(c.dead[i], peers.Vanished)
					}
				}
				wg.Wait()
				require.NoError(t, errors.Join(errs...))
				for m, x := range tables {
					if isDead[m] {
						continue
					}
					require.Equal(t, c.against < 0, verdicts[m].Vote)
					require.Equal(t, epoch, x.Epoch())
					for other, members := 0, verdicts[m].Members(c.n); other < c.n; other++ {
						require.Equal(t, !isDead[other], verdicts[m].Has(other), "%d says of %d: %v", m, other, members)
					}
				}
			}
		})
	}
}

// TestTakenOver: a coordinator that dies when only one other has copied its decision has still decided for all.
func TestTakenOver(t *testing.T) {
	tables := team(3)
	// As the members' blocks are when 0 has decided that only 0 and 2 live, 2 has copied that, and 0 has died.
	v := Verdict{Set: []uint64{0b101}, Vote: true}
	tables[0].publish(1, v)
	tables[2].publish(1, v)
	tables[2].epoch = 1
	for _, x := range tables[1:] {
		x.Engine.Peers.MarkGone(0, peers.Vanished)
	}
	got, err := tables[1].Agree(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, v, got)
	require.False(t, got.Has(1), "whoever asks sees that the others take it for gone")
}

// TestGivenUp: an agreement goes on with the next call where its context has ended, and does not begin where the rank has left.
func TestGivenUp(t *testing.T) {
	tables := team(2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tables[1].Agree(ctx, true)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, tables[1].Epoch())
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for m, x := range tables {
		wg.Go(func() { _, errs[m] = x.Agree(t.Context(), true) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	tables[0].Quit = func() bool { return true }
	_, err = tables[0].Agree(t.Context(), true)
	require.ErrorIs(t, err, transport.ErrClosed)
}
