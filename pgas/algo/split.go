package algo

import (
	"cmp"
	"slices"
	"sort"
)

// sample is an element that may become a splitter, and where it comes from: of equal elements those of earlier members come first, and of one
// member's in their order there.
type sample[T any] struct {
	value         T
	member, place int
}

// samplePlaces returns the places of at most many samples of n sorted elements, at equal distances: the begins of many parts.
func samplePlaces(n, many int) []int {
	many = min(n, many)
	places := make([]int, many)
	for i := range places {
		places[i] = i * n / many
	}
	return places
}

// splitters picks those that begin the buckets of all of p members but the first, of the samples of all. counts says how many elements each
// member has: a sample stands for the elements from it to the next one of that member.
//
// With p samples of each member and equal counts no bucket has more than twice its share (Shi and Schaeffer 1992). Members with more elements have
// samples that stand for more, which weigh more.
func splitters[T any](samples []sample[T], counts []int, p int, compare func(x, y T) int) []sample[T] {
	slices.SortFunc(samples, func(a, b sample[T]) int {
		return cmp.Or(compare(a.value, b.value), cmp.Compare(a.member, b.member), cmp.Compare(a.place, b.place))
	})
	of := make([]int, len(counts)) // samples of each member
	for _, s := range samples {
		of[s.member]++
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	var picked []sample[T]
	seen := make([]int, len(counts)) // samples of each member so far
	before := 0                      // elements that those stand for
	for _, s := range samples {
		for len(picked) < p-1 && before >= (len(picked)+1)*total/p {
			picked = append(picked, s)
		}
		n, k := counts[s.member], of[s.member]
		before += (seen[s.member]+1)*n/k - seen[s.member]*n/k
		seen[s.member]++
	}
	return picked
}

// cuts returns where member me's sorted elements are cut: bucket b of p has those from cuts[b] to cuts[b+1]. Buckets without a splitter are
// empty.
func cuts[T any](sorted []T, me, p int, by []sample[T], compare func(x, y T) int) []int {
	at := make([]int, p+1)
	for b := 1; b < p; b++ {
		if b > len(by) {
			at[b] = len(sorted)
			continue
		}
		s := by[b-1]
		switch {
		case s.member == me:
			at[b] = s.place
		case s.member < me: // what is equal here comes behind it
			at[b] = sort.Search(len(sorted), func(i int) bool { return compare(sorted[i], s.value) >= 0 })
		default:
			at[b] = sort.Search(len(sorted), func(i int) bool { return compare(sorted[i], s.value) > 0 })
		}
	}
	at[p] = len(sorted)
	return at
}

// merged returns what runs of sorted elements make together, two and two of them at a time; run i lies between begins[i] and begins[i+1]. The result
// is in one of elements and room, which has their length, and the other is of no use.
func merged[T any](elements, room []T, begins []int, compare func(x, y T) int) []T {
	for begins = slices.Compact(begins); len(begins) > 2; elements, room = room, elements {
		var next []int
		for i := 0; i+1 < len(begins); i += 2 {
			lo, mid := begins[i], begins[i+1]
			hi := mid
			if i+2 < len(begins) {
				hi = begins[i+2]
			}
			mergeTwo(room[lo:hi], elements[lo:mid], elements[mid:hi], compare)
			next = append(next, lo)
		}
		begins = append(next, len(elements))
	}
	return elements
}

// mergeTwo merges a and b, which is behind a where they are equal.
func mergeTwo[T any](into, a, b []T, compare func(x, y T) int) {
	for i := range into {
		if len(b) == 0 || len(a) > 0 && compare(a[0], b[0]) <= 0 {
			into[i], a = a[0], a[1:]
		} else {
			into[i], b = b[0], b[1:]
		}
	}
}
