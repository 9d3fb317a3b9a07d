package hose

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
)

// TestPlacesInBuckets: what a program puts at multiples of a size lies in one bucket each, wherever the kernel has mapped the memory. Such a
// use takes one firehose and one operation; one that lies across the end of a bucket takes two of each.
func TestPlacesInBuckets(t *testing.T) {
	const piece, apart = 16 << 10, 256 << 10
	page := os.Getpagesize()
	for _, into := range []int{0, page, 3 * page, 5 * page, 7 * page} {
		t.Run(fmt.Sprintf("%d bytes into a bucket", into), func(t *testing.T) {
			p := newPair(t)
			h := p.set[0]
			unit := int(h.Unit())
			require.Greater(t, unit, piece)
			all := mem.Of(make([]byte, exposed+2*unit))
			mapped := all.Slice(int(-all.Addr()&uint64(unit-1))+into%unit, exposed)
			id, err := p.set[1].Expose(mapped)
			require.NoError(t, err)
			far := NewFar(1, id, mapped.Addr(), exposed)
			for off := 0; off < exposed; off += apart {
				at := mapped.Addr() + uint64(off)
				whole, err := h.Cut(far, at, piece, piece)
				require.NoError(t, err)
				require.Equal(t, piece, whole, "the piece at %d is cut", off)
				_, direct, _, err := h.Attach("put", 0, far, at, piece, nil, false)
				require.NoError(t, err)
				require.True(t, direct)
				p.release(0)
			}
			origin, owner := h.Stats()
			require.EqualValues(t, exposed/apart, origin.BucketMisses, "one bucket for each")
			require.Zero(t, owner.Registered, "of this rank's")
			_, owner = p.set[1].Stats()
			require.EqualValues(t, exposed/apart, owner.Registered)
			require.NoError(t, h.Leave(t.Context(), []*Far{far}))
			h.Progress()
			require.NoError(t, p.set[1].Withdraw(t.Context(), id))
			p.end(t)
		})
	}
}

// TestRangesBeginInTheirFirstPage: two buckets never share a page, which would be registered for both.
func TestRangesBeginInTheirFirstPage(t *testing.T) {
	page := uint64(os.Getpagesize())
	for _, start := range []uint64{page, 7 * page, 5*page + 128, 1<<40 + page - 8} {
		r := rangeOf(3, start, 40*page)
		shift := uint8(15)
		for i := range r.Run(shift, 0, 0, r.Bytes).Count - 1 {
			off, n := r.Extent(shift, r.Run(shift, 0, 0, r.Bytes).At(i))
			require.Zero(t, (start+off+n)%page, "bucket %d of a range at %#x ends within a page", i, start)
		}
	}
}
