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
	cardConfig = iota // what must be equal everywhere
	cardNode          // equal on the ranks of one node
	cardHost          // what the machine calls itself
	cardPID           // 8 bytes
	cardCores         // that the rank may use, 2 bytes each
	cardFields
)

var errRankCard = errors.New("malformed")

func newCard(config string, h bootstrap.Host, cores []int) rankCard {
	var c rankCard
	var list []byte
	for _, core := range cores {
		list = binary.LittleEndian.AppendUint16(list, uint16(core))
	}
	pid := binary.LittleEndian.AppendUint64(nil, uint64(h.PID))
	for _, f := range [cardFields]string{config, h.Node(), h.Name, string(pid), string(list)} {
		c = binary.LittleEndian.AppendUint16(c, uint16(len(f)))
		c = append(c, f...)
	}
	return c
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

// nodes numbers the nodes in the order of ranks; here is how many ranks this rank's node has, and cores how many cores
// those may use, taken together.
func (w *World) nodes() (nodes []int, here, cores int) {
	nodes = make([]int, len(w.cards))
	number := make(map[string]int)
	for r, c := range w.cards {
		n, known := number[string(c.field(cardNode))]
		if !known {
			n = len(number)
			number[string(c.field(cardNode))] = n
		}
		nodes[r] = n
	}
	for _, n := range nodes {
		if n == nodes[w.job.Rank()] {
			here++
		}
	}
	return nodes, here, max(1, len(w.usable(nodes)))
}

// usable are the cores that the ranks of this rank's node may use, taken together.
func (w *World) usable(nodes []int) map[int]bool {
	used := make(map[int]bool)
	for r, n := range nodes {
		if n != nodes[w.job.Rank()] {
			continue
		}
		for list := w.cards[r].field(cardCores); len(list) >= 2; list = list[2:] {
			used[int(binary.LittleEndian.Uint16(list))] = true
		}
	}
	return used
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
