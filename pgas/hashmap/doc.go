// Package hashmap has a map that is spread over a team: keys are words, values numbers. Whoever has something for a key puts or adds it there, at the
// owner's, whose program takes no step for it. It is made of windows and their atomics, as a program would.
//
// # Terms
//
//   - Place: a key and its value, at the same displacement of two windows. A place without a key is free; one that had one and lost it is dead.
//   - Home: the place that a key's hash names. A key whose home is another's lies at the next place that was free, behind the last one of
//     a member at the first one of the next.
//   - Capacity: how many different keys there is room for. There are twice as many places or more, so few keys are far from home.
//
// # Life of a key
//
// Who brings a key first takes a place by a compare-and-swap on its word, from its home on; who comes later finds it there. A key is told of as itself
// plus one, since a word of 0 is a free place and one of all ones a dead one; the two keys that this leaves without a word have places of their own. The
// value is 0 until the first addition or swap, which comes after. Who deletes the key makes its place a dead one by a compare-and-swap; who brings it again takes
// another place, further on. AddAll has many compare-and-swaps and additions under way at once.
//
// # Growth
//
// Memory that all members can reach they make together, so the map grows in collective calls: Merge, which adds as many keys as there are and grows as it
// goes, or Grow, before a phase in which members add by themselves. Grow leaves dead places behind.
//
// # Invariants
//
//   - H1: a place is free, then has one key, then is dead, and never goes back; so a key has one place at a time, and it only moves away from home.
//   - H2: between a key's home and its place there is no free place: who finds one knows that the key is not there.
//   - H3: values change by atomics only, so additions of many ranks to one key are all counted.
//   - H4: what has found a key's place works on that place even if the key is deleted meanwhile, and on no other's value (H1): it has begun before the
//     deletion, so it counts as done before it. That is why Delete does not say what the value was.
//
// # Lock order
//
// There are no locks.
//
// # Limits
//
// Between two calls of Merge or Grow the map takes new keys while there are free places, capacity many or more; a deleted key's place is not free.
// ErrFull says when none is left. The two largest keys can be brought again some eight times for each member after they were deleted. Keys are of 8 bytes: a longer
// one is hashed by the program. Values are what the NICs' atomics take: numbers of 4 or 8 bytes. A key takes 8 bytes and a value's size, times two or more.
// Over a network a call waits for a round trip for each place it looks at and one for the value; AddAll shares these among its keys.
package hashmap
