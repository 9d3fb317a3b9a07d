package superpipe

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport/transporttest"
)

// FuzzTransfer makes one transfer of any length and payload over a NIC of any shape.
func FuzzTransfer(f *testing.F) {
	f.Add(uint32(12345), uint8(3), uint8(1), uint8(0), []byte{1, 2, 3})
	f.Add(uint32(4088), uint8(4), uint8(2), uint8(2), []byte{})
	f.Add(uint32(70000), uint8(5), uint8(3), uint8(4), []byte{0, 0, 0, 3})
	f.Fuzz(func(t *testing.T, length uint32, which, slots, shape uint8, seed []byte) {
		s := setup{config: Config{SlotBytes: (1 + int(slots%4)) * Block, Fold: 2 + int(slots/4%4), Leases: 1}}
		s.config.Slots = s.config.Fold
		s.fabric = transporttest.FabricConfig{InOrder: shape&1 == 0, NoInline: shape&2 != 0, MaxSGE: 1 + int(shape>>2&3), MaxPost: 1 + int(shape>>4), MaxMessage: Block + int(seedOf(seed)%60000)}
		r := newRig(t, 2, s)
		n := 1 + int(length%200_000)
		k := kinds[int(which)%len(kinds)]
		want := payload(int(which), n, rand.New(rand.NewPCG(seedOf(seed), 1)))
		for i := 0; i < n && len(seed) > 0; i++ {
			want[i] ^= seed[i%len(seed)]
		}
		for round := range 2 { // the second finds the first's payload and flags in the workspace
			transfer(t, r.ranks[0], r.ranks[1], k, want, round, k.name)
		}
		r.idle()
	})
}

func seedOf(b []byte) (s uint64) {
	for _, x := range b {
		s = s*31 + uint64(x)
	}
	return s
}

// FuzzMessages parses any bytes; what is accepted is written as it was read.
func FuzzMessages(f *testing.F) {
	f.Add(Offer{Bytes: 1, AckAddr: 2, AckKey: 3, Tag: 4}.Append(nil))
	f.Add(Grant{Generation: 1, Addr: 2, Key: 3, Lease: 4, SlotBytes: Block, Fold: 3, Way: WayImm}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, rest, err := ParseOffer(b); err == nil {
			require.Equal(t, b, append(o.Append(nil), rest...))
		} else {
			require.ErrorIs(t, err, ErrMalformed)
		}
		if g, rest, err := ParseGrant(b); err == nil {
			require.Equal(t, b, append(g.Append(nil), rest...))
		} else {
			require.ErrorIs(t, err, ErrMalformed)
		}
	})
}

func TestFlagsAndImmediates(t *testing.T) {
	seen := map[uint64]bool{}
	for _, g := range []uint64{1, 2, lastGeneration - 1, lastGeneration} {
		for _, seq := range []int{0, 1, 1<<sequenceBits - 1} {
			for marks := range uint64(1 << markBits) {
				f := flag(g, seq, marks)
				require.NotZero(t, f)
				require.False(t, seen[f], "one value for two places")
				seen[f] = true
			}
		}
	}
	require.Equal(t, 7, acked(ack(lastGeneration, 7), lastGeneration))
	require.Zero(t, acked(ack(5, 7), 6), "an older transfer's")
	for _, lease := range []uint32{0, 1, mostLeases - 1} {
		got, ours := immLease(immediate(lease, lastGeneration, 1<<20))
		require.True(t, ours)
		require.EqualValues(t, lease, got)
	}
	_, ours := immLease(0)
	require.False(t, ours)
}

func TestPolicies(t *testing.T) {
	for p := Super; p <= PipelinedPins; p++ {
		got, err := ParsePolicy(p.String())
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
	p, err := ParsePolicy("")
	require.NoError(t, err)
	require.Equal(t, Super, p)
	_, err = ParsePolicy("fast")
	require.ErrorContains(t, err, "onthefly")
	require.ErrorIs(t, (&Config{}).validate(), errConfig)
}
