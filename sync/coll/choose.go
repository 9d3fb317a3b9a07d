package coll

import (
	"iter"
	"math/bits"
)

// How long data is divided into turns, by size and number of members: pure functions, whose costs are in turns, which are barriers of all.
//
// In a gather root reads an outbox-full from every member in each turn, which is as much as there is room for; a short one comes along a binomial
// tree instead, in ceil(log2 n) steps, where so many reads would take longer (trees for short messages: Thakur, Rabenseifner, Gropp 2005). Likewise
// a short all-to-all (Bruck, Ho, Kipnis, Upfal, Weathersby 1997). A scatter whose src goes through root's outbox uses one outbox of n; pushed, it uses those of all, and both move every byte once to whom it is for, which is
// the least there can be (Chan, Heimlich, Purkayastha, van de Geijn 2007, section 4). In an all-to-all in which members send in the
// order of their src, all read in one turn what is for one of them; in pairs, of which each member has another one in each step, all read
// and are read at the same time (the pairwise exchange of Thakur, Rabenseifner, Gropp 2005, section 4.3, for long messages).

// Where members share nodes, gathers and scatters go by nodes as far as outboxes have room for a node's parts, and all-to-alls where that saves more than
// it costs: package pgsync says when, in Collected and InSlices.

// together is how many reads that go at once take as long as one step, which is a flag and a read that waits for it; where members share nodes,
// and read from some of their own, there may be more. In virtual time, a network of 100 Gbit/s, a gather of 128 members takes 20 µs more than
// a barrier with its reads at once, 0.16 µs for each, and a step takes 1.6 µs; on 16 nodes both take 7 µs more.
const together, togetherOnNodes = 10, 32

// inSteps says whether reads one after the other, of parts that are not longer than most bytes, take less than reading from n members at once;
// circle is how many take part in the steps.
func inSteps(n, circle, part, most int) bool {
	each := together
	if circle < n {
		each = togetherOnNodes
	}
	return part <= most && n > each*max(bits.Len(uint(circle-1)), 1)
}

// turnsFor is how many turns it takes to move so many bytes; nothing takes one, in which all meet.
func turnsFor(bytes, payload int) int { return max(1, (bytes+payload-1)/payload) }

// pushes says whether a scatter of whole bytes to n members is pushed. What fits into one outbox is read from there: that
// takes a turn as well, and root is done sooner.
func pushes(n, whole, payload int) bool { return n > 1 && whole > payload }

// leg is a turn of an all-to-all in pairs: steps first to first+steps-1, and bytes [lo, hi) of the part of each. In step s a member sends to the one
// s places behind it.
type leg struct{ first, steps, lo, hi int }

// legs divides an all-to-all among n members, whose longest part has part bytes, into turns. Short parts go several in a turn.
func legs(n, part, payload int) iter.Seq[leg] {
	return func(yield func(leg) bool) {
		if part > payload {
			for s := 1; s < n; s++ {
				for lo := 0; lo < part; lo += payload {
					if !yield(leg{s, 1, lo, min(lo+payload, part)}) {
						return
					}
				}
			}
			return
		}
		for s, k := 1, payload/max(part, 1); s < n; s += k {
			if !yield(leg{s, min(k, n-s), 0, part}) {
				return
			}
		}
	}
}

// legCount is how many turns legs makes.
func legCount(n, part, payload int) int {
	if part > payload {
		return (n - 1) * turnsFor(part, payload)
	}
	return turnsFor(n-1, payload/max(part, 1))
}

// inPairs says whether an all-to-all goes in pairs: longest are the bytes of the longest src, part those of the longest part of any. A turn
// in order may take up to n times as long as one in pairs, so twice as many of these are worth it; where few parts are long and the others
// short there would be more, most of them empty.
func inPairs(n, part, longest, payload int) bool {
	inOrder := turnsFor(longest, payload)
	return n > 1 && inOrder > 1 && legCount(n, part, payload) <= 2*inOrder
}

// turnsByOwners is how many turns an all-to-all takes in which all read from the owners, in pairs or in order.
func turnsByOwners(n, part, whole, payload int) int {
	if inPairs(n, part, whole, payload) {
		return legCount(n, part, payload)
	}
	return turnsFor(whole, payload)
}

// nearlyAlike says whether parts may travel as if all were as long as the longest: all fit into an outbox, or somebody's are half as long on the average.
func nearlyAlike(n, part, longest, payload int) bool { return n*part <= max(payload, 2*longest) }
