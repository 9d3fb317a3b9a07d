package predict

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// play is a use of a buffer at a site.
type play struct{ site, buffer int }

// TestReturns plays programs and looks at what is foreseen for the first use of a buffer, and for the later ones.
func TestReturns(t *testing.T) {
	const size = 1 << 20
	addr := func(i int) uint64 { return 0xc000000000 + uint64(i)*size }
	program := func(buffers, uses int, site func(i int) int) (all []play) {
		for i := range buffers {
			for range uses {
				all = append(all, play{site(i), i})
			}
		}
		return all
	}
	same := func(int) int { return 1 }
	for _, c := range []struct {
		name  string
		plays []play
		reach uint64
		first []uint8 // foreseen at the first use of the last buffers
	}{
		{"each is used once", program(20, 1, same), 0, []uint8{1, 1, 1}},
		{"each is used twice", program(20, 2, same), 0, []uint8{2, 2}},
		{"each is used six times", program(20, 6, same), 0, []uint8{6, 6}},
		{"too few to tell", program(4, 6, same), 0, []uint8{1, 1, 1, 1}},
		{"two sites, one of which returns", program(40, 6, func(i int) int { return 1 + i%2 }), 0, []uint8{6, 6}},
		{"all are used over and over, but a registration lasts for three", round(5, 20), 3 * size, []uint8{1, 1}},
		{"the same, and it lasts for five", append(round(5, 20), play{1, 5}), 5 * size, []uint8{20}},
		{"many times", append(program(4, 300, same), play{1, 9}), 0, []uint8{many}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Returns
			var first []uint8
			seen := map[int]bool{}
			late := c.reach == 3*size
			for _, u := range c.plays {
				got := r.Use(uint64(u.site)*977, addr(u.buffer), size, false, 1, c.reach, 0)
				if !seen[u.buffer] || late {
					first = append(first, got)
				} else {
					require.Greater(t, got, uint8(1), "it is back")
				}
				seen[u.buffer] = true
			}
			require.GreaterOrEqual(t, len(first), len(c.first))
			require.Equal(t, c.first, first[len(first)-len(c.first):])
		})
	}
}

// round is rounds over a number of buffers.
func round(buffers, rounds int) (all []play) {
	for range rounds {
		for i := range buffers {
			all = append(all, play{1, i})
		}
	}
	return all
}

// TestReturnsChanges: a site whose buffers begin to come back is believed after some of them, and so is one whose buffers cease to.
func TestReturnsChanges(t *testing.T) {
	var r Returns
	next := uint64(0)
	fresh := func(uses int) (foreseen uint8) {
		next += 1 << 20
		foreseen = r.Use(5, next, 1<<20, false, 1, 0, 0)
		for range uses - 1 {
			r.Use(5, next, 1<<20, false, 1, 0, 0)
		}
		return foreseen
	}
	for _, uses := range []int{1, 5, 1} {
		var last uint8
		for range 300 {
			last = fresh(uses)
		}
		if uses == 1 {
			require.EqualValues(t, 1, last)
		} else {
			require.Greater(t, last, uint8(3))
		}
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { fresh(2) }))
	require.Greater(t, r.Use(6, next, 1<<20, false, 1, 0, 0), uint8(1), "it is known")
	require.EqualValues(t, 1, r.Use(6, next, 1<<20, false, 1, 0, 1), "it may be another one")
}

// TestCollection: what lies behind a collection at a known address begins anew, as a buffer of the site that uses it now.
func TestCollection(t *testing.T) {
	var r Returns
	for b := range uint64(8) { // a site whose buffers come back
		r.Use(5, b<<20, 1<<20, false, 1, 0, 0)
		r.Use(5, b<<20, 1<<20, false, 1, 0, 0)
	}
	good := r.Use(5, 100<<20, 1<<20, false, 1, 0, 0)
	require.Greater(t, good, uint8(1))
	require.Equal(t, uint8(many), r.Use(5, 0, 1<<20, false, 1, 0, 0), "a third use")
	require.Equal(t, good, r.Use(5, 0, 1<<20, false, 1, 0, 1), "as any buffer of its site")

	for b := range uint64(8) { // another site makes new buffers where those were: it pays with its own reputation
		require.Equal(t, uint8(1), r.Use(9, b<<20, 1<<20, false, 1, 0, 2))
	}
	require.Greater(t, r.Use(9, 100<<20, 1<<20, true, 1, 0, 3), uint8(1), "what is registered is what it was")

	var fresh Returns
	for epoch := range uint64(50) { // one buffer for each transfer, at one address: the collector is as fast as the program
		require.Equal(t, uint8(1), fresh.Use(7, 1<<30, 1<<20, false, 1, 0, epoch))
	}
}

// TestVain: a site whose buffers cease to come back foresees no more in vain than so many bytes as came back before, also behind collections
// and at the same addresses, and not at all what is larger than that; and it believes again what comes back again.
func TestVain(t *testing.T) {
	const size = 1 << 20
	for _, same := range []bool{false, true} {
		var r Returns
		next, epoch := uint64(0), uint64(0)
		transfer := func(bytes, uses int) (foreseen uint8) {
			next += 16 << 20
			if same {
				epoch++
				next = 16 << 20
			}
			foreseen = r.Use(5, next, bytes, false, 1, 0, epoch)
			for range uses - 1 {
				r.Use(5, next, bytes, foreseen > 1, 1, 0, epoch)
			}
			return foreseen
		}
		for range 500 {
			transfer(size, 6)
		}
		require.Greater(t, transfer(size, 6), uint8(4))
		require.EqualValues(t, 1, transfer(2*siteCredit*size, 1), "it has never risked as much")
		vain := 0
		for range 100 {
			if transfer(size, 1) > 1 {
				vain++
			}
		}
		require.Equal(t, siteCredit, vain)
		late := 0
		for range 100 {
			if transfer(size, 6) == 1 {
				late++
			}
		}
		require.Less(t, late, 80, "of a window of 64 three quarters have to come back")
	}
}

// TestUsesThatStandForOthers: of memory that is registered not all uses need be told; a site's buffers count as used as often as they were.
func TestUsesThatStandForOthers(t *testing.T) {
	var all, some Returns
	const size, uses = 1 << 20, 28
	for b := range uint64(8) {
		all.Use(5, b<<30, size, false, 1, 0, 0)
		some.Use(5, b<<30, size, false, 1, 0, 0)
		for range uses {
			all.Use(5, b<<30, size, true, 1, 0, 0)
		}
		for range uses / 7 {
			some.Use(5, b<<30, size, true, 7, 0, 0)
		}
	}
	require.Equal(t, all.moved, some.moved)
	want := all.Use(5, 100<<30, size, false, 1, 0, 0)
	require.Greater(t, want, uint8(uses/2))
	require.Equal(t, want, some.Use(5, 100<<30, size, false, 1, 0, 0))
}

// TestSitesOfOnePlace: two call sites whose numbers share a place are told apart; of three the one that is older is forgotten.
func TestSitesOfOnePlace(t *testing.T) {
	const size = 1 << 20
	var r Returns
	of := map[uint8][]uint64{}
	var sites []uint64
	for site := uint64(1); len(sites) < 3; site++ {
		at := new(Returns).place(site)
		of[at] = append(of[at], site)
		sites = of[at]
	}
	next := uint64(0xc000000000)
	begin := func(site uint64, uses int) (foreseen uint8) {
		next += size
		foreseen = r.Use(site, next, size, false, 1, 0, 0)
		for range uses - 1 {
			r.Use(site, next, size, false, 1, 0, 0)
		}
		return foreseen
	}
	for range 10 {
		begin(sites[0], 6)
		begin(sites[1], 1)
	}
	require.EqualValues(t, 6, begin(sites[0], 6))
	require.EqualValues(t, 1, begin(sites[1], 1))
	begin(sites[2], 6)
	require.EqualValues(t, 1, begin(sites[0], 6), "it was the older of the two")
	require.NotEqual(t, r.place(sites[0]), r.place(sites[2]))
}
