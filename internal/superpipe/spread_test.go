package superpipe

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/spread"
	"gopgas/transport"
)

// scattered makes a spread of total bytes over memory of its own, in rows, in columns or at random, and returns the places of its bytes.
func scattered(rng *rand.Rand, total int) (s *spread.Spread, all mem.Range, places []int) {
	all = mem.Of(make([]uint64, total/2+200)).Slice(rng.IntN(8), 4*total+1000)
	s = spread.New(all)
	add := func(off, n int) {
		s.Add(off, n)
		for i := range n {
			places = append(places, off+i)
		}
	}
	long, kind := 1+rng.IntN(40), rng.IntN(3)
	if kind == 1 {
		long = 1 + rng.IntN(6000)
	}
	at, step := rng.IntN(100), 1+rng.IntN(3)
	for len(places) < total {
		n := min(long, total-len(places))
		if kind == 2 {
			n = min(1+rng.IntN(long), n)
		}
		add(at, n)
		switch kind {
		case 0:
			at += n * step // step 1: they adjoin
		case 1:
			at += n + n/2
		default:
			at += n + rng.IntN(2*n)
		}
	}
	if rng.IntN(4) == 0 { // downwards
		d := spread.New(all)
		places = places[:0]
		last := 3*total - long
		for done := 0; done < total; last -= long + 3 {
			n := min(long, total-done)
			if last < 0 {
				last = 3*total + 500
			}
			d.Add(last, n)
			for i := range n {
				places = append(places, last+i)
			}
			done += n
		}
		s = d
	}
	return s, all, places
}

// TestSpreadTransfers puts pieces into pieces through leases, over every NIC that has a way, and looks at all bytes.
func TestSpreadTransfers(t *testing.T) {
	for name, c := range flavours {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, c)
			a, b := r.ranks[0], r.ranks[1]
			if a.t == nil {
				_, _, err := a.o.Begin(Transfer{Rank: 1, Lease: true, Spread: spread.New(mem.Range{})})
				require.ErrorIs(t, err, transport.ErrUnsupported)
				return
			}
			rng := rand.New(rand.NewPCG(41, 42))
			for i, n := range []int{1, 8, 4088, 4089, 12 << 10, 50_003} {
				near, local, from := scattered(rng, n)
				far, remote, to := scattered(rng, n)
				copy(local.Data(), payload(i, local.Bytes, rng))
				want := append([]byte(nil), remote.Data()...)
				for k := range from {
					want[to[k]] = local.Data()[from[k]]
				}
				p := a.begin(Transfer{Rank: 1, EP: a.eps[1], Local: local, Lease: true, Spread: near})
				p.Step()
				var g Grant
				until(t, "a lease", func() (ok bool) {
					g, ok = b.t.LeaseSpread(0, b.eps[0], p.Offer(), remote, far)
					return ok
				})
				require.NoError(t, p.Granted(g))
				require.NoError(t, finish(t, p))
				require.Equal(t, want, remote.Data(), "%d bytes", n)
			}
			_, ok := b.t.LeaseSpread(0, b.eps[0], Offer{Bytes: 5, Tag: 1}, mem.Of(make([]byte, 5)), spread.New(mem.Range{}))
			require.False(t, ok)
			_, _, err := a.o.Begin(Transfer{Rank: 1, Spread: spread.New(mem.Range{})})
			require.ErrorIs(t, err, errSpread, "no lease")
			r.idle()
		})
	}
}
