package superpipe

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// stretches are registrations of a target's memory, each of so many bytes but the first, which is shorter, and the last.
type stretches struct {
	first, bytes int
	keys         []uint64
}

func (s *stretches) Key(at int) (key uint64, end int) {
	if at < s.first {
		return s.keys[0], s.first
	}
	i := 1 + (at-s.first)/s.bytes
	return s.keys[i], s.first + i*s.bytes
}

// stretch registers memory in stretches, and returns what ends that.
func (k *rank) stretch(r mem.Range, first, each int) (s *stretches, end func()) {
	s = &stretches{first: first, bytes: each}
	var all []transport.Region
	for at, n := 0, first; at < r.Bytes; at, n = at+n, each {
		reg, err := k.d.Register(r.Slice(at, min(n, r.Bytes-at)), transport.AllAccess)
		require.NoError(k.r.t, err)
		all, s.keys = append(all, reg), append(s.keys, reg.RKey)
	}
	return s, func() {
		for _, reg := range all {
			require.NoError(k.r.t, k.d.Deregister(reg))
		}
	}
}

// TestKeysOfAChunk: a chunk that lies in three stretches goes out as three operations, each under its key, and lands with the last.
func TestKeysOfAChunk(t *testing.T) {
	nic, c := quietConfig(transport.Caps{})
	o, err := NewOrigin(c)
	require.NoError(t, err)
	local := mem.Of(make([]byte, Block))
	p, _, err := o.Begin(Transfer{Local: local, Keys: &stretches{first: 1000, bytes: 2000, keys: []uint64{7, 8, 9}}})
	require.NoError(t, err)
	p.Step()
	require.Empty(t, nic.ops, "nobody has said where the target is")
	require.Less(t, o.FreeSlots(), c.Slots, "and the copy is made")
	p.Reach(1<<20, 0)
	for p.Step() {
	}
	type part struct {
		at, key uint64
		bytes   int
	}
	var parts []part
	for _, op := range nic.ops {
		parts = append(parts, part{op.RAddr - 1<<20, op.RKey, op.SGE[0].Mem.Bytes})
	}
	require.Equal(t, []part{{0, 7, 1000}, {1000, 8, 2000}, {3000, 9, Block - 3000}}, parts)
	for _, op := range nic.ops {
		require.False(t, p.Done())
		o.Completed(&transport.Completion{Kind: transport.OpWrite, Cookie: op.Cookie})
		p.Step()
	}
	require.True(t, p.Done())
	require.NoError(t, p.Err())
	require.Equal(t, c.Slots, o.FreeSlots())
}

// TestSlotsForWhoHasKeys: pipes that wait for their keys leave slots to those that have them, and take all that they need later.
func TestSlotsForWhoHasKeys(t *testing.T) {
	r := newRig(t, 2, setup{config: smallSlots()})
	a, b := r.ranks[0], r.ranks[1]
	rng := rand.New(rand.NewPCG(5, 6))
	type put struct {
		p    *Pipe
		want []byte
		to   guarded
		keys *stretches
	}
	var waiting []put
	for i := range 4 {
		want, to := payload(0, 100_000, rng), guard(100_000, i)
		keys, end := b.stretch(to.in, 3001, 20_000)
		defer end()
		p := a.begin(Transfer{Rank: 1, EP: a.eps[1], Local: mem.Of(want), Behind: 1e-3, Keys: keys})
		for p.Step() {
		}
		waiting = append(waiting, put{p, want, to, keys})
	}
	require.GreaterOrEqual(t, a.o.FreeSlots(), a.o.c.Fold)
	transfer(t, a, b, kinds[0], payload(0, 60_000, rng), 3, "by one who has its key")
	for i := len(waiting) - 1; i >= 0; i-- { // not in their order
		w := waiting[i]
		w.p.Reach(w.to.in.Addr(), 0)
		require.NoError(t, finish(t, w.p))
		w.to.check(t, w.want, "put %d", i)
	}
	failed := a.begin(Transfer{Rank: 1, EP: a.eps[1], Local: mem.Of(make([]byte, 50_000)), Behind: 1e-3, Keys: waiting[0].keys})
	failed.Step()
	failed.Fail(errBroken)
	require.ErrorIs(t, finish(t, failed), errBroken)
	r.idle()
	require.Zero(t, a.o.early)
}
