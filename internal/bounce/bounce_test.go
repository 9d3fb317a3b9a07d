package bounce

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
)

func TestPoolAgainstModel(t *testing.T) {
	for _, c := range []struct{ bytes, slot, want int }{{1000, 100, 10}, {1099, 100, 10}, {99, 100, 0}, {0, 8, 0}, {4096, 4096, 1}} {
		p := New(mem.Of(make([]byte, c.bytes)), c.slot)
		require.Equal(t, c.want, p.Free())
		require.Equal(t, c.slot, p.SlotBytes())
		taken := map[int32]bool{}
		rng := rand.New(rand.NewPCG(1, 2))
		var last int32 = -1
		for range 2000 {
			if rng.IntN(2) == 0 {
				s, ok := p.Take()
				require.Equal(t, len(taken) < c.want, ok)
				if ok {
					require.False(t, taken[s], "slot %d was given twice", s)
					if last >= 0 {
						require.Equal(t, last, s, "the one last given back comes first")
					}
					taken[s] = true
				}
				last = -1
			} else {
				for s := range taken {
					p.Give(s)
					delete(taken, s)
					last = s
					break
				}
			}
			require.Equal(t, c.want-len(taken), p.Free())
		}
	}
}

func TestSlotsAreDisjoint(t *testing.T) {
	b := make([]byte, 64)
	p := New(mem.Of(b), 7)
	for n := int32(1); ; n++ {
		s, ok := p.Take()
		if !ok {
			break
		}
		d := p.Range(s).Data()
		require.Len(t, d, 7)
		for i := range d {
			require.Zero(t, d[i])
			d[i] = byte(n)
		}
	}
	require.Equal(t, []byte{0}, b[63:], "the rest is left unused")
}
