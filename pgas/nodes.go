package pgas

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// nodesFrom reads a list of nodes, such as "0,0,1".
func (c *Config) nodesFrom(environ []string) error {
	v, _ := lookup(environ, envNodes)
	if v == "" {
		return nil
	}
	for item := range strings.SplitSeq(v, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(item))
		if err != nil || n < 0 {
			return badNodes(strconv.Quote(v))
		}
		c.Nodes = append(c.Nodes, n)
	}
	return nil
}

// validNodes refuses nodes that no variable could name.
func (c *Config) validNodes() error {
	text := c.nodesText()
	if len(c.Nodes) > 0 && slices.Min(c.Nodes) < 0 {
		return badNodes(text)
	}
	if len(text) > mostNodesText {
		return fmt.Errorf("%w: %s: found %d nodes in %d characters, want %d characters at most: behind the last rank that it names the list begins again", ErrConfig, envNodes,
			len(c.Nodes), len(text), mostNodesText)
	}
	return nil
}

// mostNodesText is how long the list of nodes may be, so that it fits into a field of a card with the other settings that are to be equal.
const mostNodesText = 60_000

func badNodes(found string) error {
	return fmt.Errorf("%w: %s=%s: want a node for each rank, from 0 on, such as 0,0,1", ErrConfig, envNodes, found)
}

// nodesText is what nodesFrom reads.
func (c *Config) nodesText() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Nodes), " ", ","), "[]")
}

// part names the part of its machine that a rank keeps to; "": there are none.
func (c *Config) part(rank int) string {
	if len(c.Nodes) == 0 {
		return ""
	}
	return fmt.Sprint(" part ", c.Nodes[rank%len(c.Nodes)])
}

// nodes numbers the nodes in the order of ranks; here is how many ranks this rank's node has, and cores how many cores
// those may use, taken together.
func (w *World) nodes() (nodes []int, here, cores int) {
	nodes, here = w.alike(cardNode)
	return nodes, here, max(1, len(w.usable(nodes)))
}

// crowd returns how many ranks share how many cores: those of this rank's node, or, where that is more than there are cores, those of its
// machine. Containers are nodes of their own, and so are the parts of PGAS_NODES, but a rank that spins in one keeps the cores from the others.
func (w *World) crowd(here, cores int) (ranks, on int) {
	machines, ranks := w.alike(cardMachine)
	if on = len(w.union(machines, cardAllCores)); ranks > on && here <= cores {
		return ranks, max(1, on)
	}
	return here, cores
}

// alike numbers the ranks by a field of their cards, in the order of ranks, and counts those with this rank's.
func (w *World) alike(field int) (numbers []int, here int) {
	numbers = make([]int, len(w.cards))
	number := make(map[string]int)
	for r, c := range w.cards {
		n, known := number[string(c.field(field))]
		if !known {
			n = len(number)
			number[string(c.field(field))] = n
		}
		numbers[r] = n
	}
	for _, n := range numbers {
		if n == numbers[w.job.Rank()] {
			here++
		}
	}
	return numbers, here
}
