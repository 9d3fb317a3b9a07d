package firehose

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// defaultUnit is the smallest bucket where Limits names none, in bytes. What needs larger ones gets a higher order.
const defaultUnit = 32 << 10

// Sentinels of the budget; match with errors.Is.
var (
	// ErrLimits: limits from which no budget can be made.
	ErrLimits = errors.New("no registration budget")
	// ErrDisagree: ranks of one world with different budgets.
	ErrDisagree = errors.New("ranks disagree on the registration budget")
)

// Limits is what a budget is made of; all in bytes. Every rank of a world must give the same.
type Limits struct {
	Ranks    int
	Pinnable int64 // what a rank may have registered for this in all
	// Peers is the part kept for peers, M; Own is the part for own use and for unused buckets, V. If neither is given
	// the peers get three quarters; if one is given the other gets the rest.
	Peers, Own int64
	Unit       int64 // the smallest bucket; 0: defaultUnit
	Page       int64 // the machine's pages
}

// Budget is how a rank's registrations are divided. It is a value; equal Limits give equal Budgets.
type Budget struct {
	Ranks      int
	Shift      uint8 // binary logarithm of the unit's bytes
	Peers, Own int64 // M and V, bytes
	Share      int64 // F: units that each rank may hold of each other
	Victims    int64 // V in units
	Page       int64 // bytes of the machine's pages, by which ranges are described
}

// Split makes the budget. There is no least M or V: where a share would be empty the unit shrinks, down to a page;
// if Share is 0 even then, the ranks use bounce buffers and messages for what is not registered otherwise. So they
// do if Pinnable is 0. With one rank the share is all of Peers; nobody asks for it.
func Split(l Limits) (Budget, error) {
	unit := l.Unit
	if unit == 0 {
		unit = max(defaultUnit, l.Page)
	}
	if l.Ranks < 1 || l.Page < 1 || l.Page&(l.Page-1) != 0 || unit < l.Page || unit&(unit-1) != 0 {
		return Budget{}, fmt.Errorf("%w: %d ranks, units of %d bytes, pages of %d: want at least one rank and powers of two, a unit at least a page",
			ErrLimits, l.Ranks, unit, l.Page)
	}
	if l.Pinnable < 0 || l.Peers < 0 || l.Own < 0 {
		return Budget{}, fmt.Errorf("%w: negative sizes in %+v", ErrLimits, l)
	}
	peers, own := l.Peers, l.Own
	switch {
	case peers == 0 && own == 0:
		peers = l.Pinnable/4*3 + l.Pinnable%4*3/4
		own = l.Pinnable - peers
	case peers == 0:
		peers = max(0, l.Pinnable-own)
	case own == 0:
		own = max(0, l.Pinnable-peers)
	}
	if peers > l.Pinnable || own > l.Pinnable-peers {
		return Budget{}, fmt.Errorf("%w: %d bytes for peers and %d for own use: found %d that may be registered; ask for less or raise the limit of locked memory",
			ErrLimits, peers, own, l.Pinnable)
	}
	share := func() int64 { return peers / unit / int64(max(1, l.Ranks-1)) }
	for share() == 0 && unit > l.Page {
		unit /= 2
	}
	return Budget{
		Ranks: l.Ranks, Shift: log2(unit), Peers: peers, Own: own,
		Share: share(), Victims: own / unit, Page: l.Page,
	}, nil
}

// Unit returns the smallest bucket's size in bytes.
func (b Budget) Unit() int64 { return 1 << b.Shift }

// MaxOrder returns the largest order of which a rank can hold a bucket of another.
func (b Budget) MaxOrder() uint8 {
	if b.Share == 0 {
		return 0
	}
	return min(mostOrder, uint8(bits.Len64(uint64(b.Share))-1), 61-b.Shift)
}

// MaxRange returns the largest ID of a Range.
func (b Budget) MaxRange() uint32 { return maxRange }

// variant is the form of the accounting and of its messages; it changes with either.
const variant = 2

// Hash returns a number that is equal on all ranks if and, but for an unlucky chance in 2^64, only if their budgets
// and their form of accounting are.
func (b Budget) Hash() uint64 {
	var buf []byte
	for _, v := range []int64{variant, int64(b.Ranks), int64(b.Shift), b.Peers, b.Own, b.Share, b.Victims, b.Page} {
		buf = binary.LittleEndian.AppendUint64(buf, uint64(v))
	}
	return xxhash.Sum64(buf)
}

// Agree returns an error that names the ranks whose Hash differs from this rank's own. All ranks find one if one does.
func (b Budget) Agree(hashes []uint64) error {
	own := b.Hash()
	var differ []string
	for r, h := range hashes {
		if h != own {
			differ = append(differ, fmt.Sprint(r))
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return fmt.Errorf("%w: this rank has %v, rank %s another one: give all ranks the same limit of locked memory and the same settings",
		ErrDisagree, b, strings.Join(differ, ", "))
}

func (b Budget) String() string {
	return fmt.Sprintf("%d bytes for %d ranks in units of %d, %d units each, and %d bytes of its own", b.Peers, b.Ranks, b.Unit(), b.Share, b.Own)
}
