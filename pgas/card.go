package pgas

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"gopgas/bootstrap"
)

// rankCard is what a rank tells the others before anything else, as it travels: fields of 2 bytes of length and their
// bytes each. Every rank holds all cards, so they are kept as they are and taken apart when somebody asks.
type rankCard []byte

// The fields of a card, in order.
const (
	cardConfig   = iota // what must be equal everywhere
	cardNode            // equal on the ranks of one node
	cardMachine         // equal on the ranks of one kernel, whose cores they share
	cardHost            // what the machine calls itself
	cardPID             // 8 bytes
	cardCores           // that the machine gives the rank the time of, 2 bytes each
	cardAllCores        // that it may run on, 2 bytes each
	cardFields
)

var errRankCard = errors.New("malformed")

// newCard is the card of a rank on part of host h that is given the time of some cores, of all those that it may run on.
func newCard(config string, h bootstrap.Host, part string, given, all []int) rankCard {
	machine := h.BootID
	if machine == "" {
		machine = h.Name
	}
	pid := binary.LittleEndian.AppendUint64(nil, uint64(h.PID))
	var c rankCard
	for _, f := range [cardFields]string{config, h.Node() + part, machine, h.Name, string(pid), coreList(given), coreList(all)} {
		c = binary.LittleEndian.AppendUint16(c, uint16(len(f)))
		c = append(c, f...)
	}
	return c
}

func coreList(cores []int) string {
	var list []byte
	for _, core := range cores {
		list = binary.LittleEndian.AppendUint16(list, uint16(core))
	}
	return string(list)
}

// check verifies that all fields are there.
func (c rankCard) check() error {
	for range cardFields {
		if len(c) < 2 || len(c)-2 < int(binary.LittleEndian.Uint16(c)) {
			return errRankCard
		}
		c = c[2+int(binary.LittleEndian.Uint16(c)):]
	}
	if len(c) != 0 {
		return errRankCard
	}
	return nil
}

// field returns field i of a card that check has passed.
func (c rankCard) field(i int) []byte {
	for range i {
		c = c[2+int(binary.LittleEndian.Uint16(c)):]
	}
	n := 2 + int(binary.LittleEndian.Uint16(c))
	return c[2:n:n]
}

func (c rankCard) host() string { return string(c.field(cardHost)) }

func (c rankCard) pid() int {
	f := c.field(cardPID)
	if len(f) != 8 {
		return 0
	}
	return int(binary.LittleEndian.Uint64(f))
}

// introduce exchanges the cards and checks what must be equal.
func (w *World) introduce(ctx context.Context, mine rankCard) error {
	all, err := w.job.Exchange(ctx, mine)
	if err != nil {
		return fmt.Errorf("meet the other ranks: %w", err)
	}
	w.cards = make([]rankCard, len(all))
	for r, b := range all {
		c := rankCard(b)
		if err := c.check(); err != nil {
			return fmt.Errorf("card of rank %d, %q: %w", r, b, err)
		}
		if string(c.field(cardConfig)) != string(mine.field(cardConfig)) {
			theirs, ours := unlike(string(c.field(cardConfig)), string(mine.field(cardConfig)))
			return fmt.Errorf("%w: rank %d has %s, rank %d has %s; they must be equal on all ranks", ErrConfig, r, theirs, w.job.Rank(), ours)
		}
		w.cards[r] = c
	}
	return nil
}

// usable are the cores that the ranks of this rank's node may use, taken together.
func (w *World) usable(nodes []int) map[int]bool { return w.union(nodes, cardCores) }

// union is what is in that list of cores of any rank with this one's number.
func (w *World) union(numbers []int, field int) map[int]bool {
	all := make(map[int]bool)
	for r, n := range numbers {
		if n != numbers[w.job.Rank()] {
			continue
		}
		for list := w.cards[r].field(field); len(list) >= 2; list = list[2:] {
			all[int(binary.LittleEndian.Uint16(list))] = true
		}
	}
	return all
}

// idleCores says what of this node is left for registration helpers: cores that the job may use and its ranks, which are bound to
// others, may not; and where ranks may use more cores than they are, those.
func (w *World) idleCores(nodes []int, here int, job []int) (cores int, spare []int) {
	used := w.usable(nodes)
	for _, core := range job {
		if !used[core] {
			spare = append(spare, core)
		}
	}
	return max(here, len(used)) + len(spare), spare
}
