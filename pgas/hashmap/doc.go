// Package hashmap has a map that is spread over a team: keys are words, values numbers. Whoever has something for a key puts or adds it there, at the
// owner's, whose program takes no step for it. It is made of windows and their atomics, as a program would.
//
// # Terms
//
//   - Place: a key and its value, at the same displacement of two windows. A place without a key is free; one that has one keeps it.
//   - Home: the place that a key's hash names. A key whose home is another's lies at the next place that was free, behind the last one of
//     a member at the first one of the next.
//   - Capacity: how many different keys there is room for. There are twice as many places or more, so few keys are far from home.
//
// # Life of a key
//
// Who brings a key first takes a place by a compare-and-swap on its word, from its home on; who comes later finds it there. A key is told of as itself
// plus one, since a word of 0 is a free place; the one that this makes 0 has a place of its own. The value is 0 until
// the first addition or swap, which comes after. AddAll has many compare-and-swaps and additions under way at once.
//
// # Invariants
//
//   - H1: a place's key is written once, by the one whose compare-and-swap found it free; so a key has one place.
//   - H2: between a key's home and its place there is no free place: who finds one knows that the key is not there.
//   - H3: values change by atomics only, so additions of many ranks to one key are all counted.
//
// # Lock order
//
// There are no locks.
//
// # Limits
//
// The capacity does not grow; ErrFull says when all places are taken. Keys are not removed. A key takes 8 bytes and a value's size, times two or more.
// Over a network a call waits for a round trip for each place it looks at and one for the value; AddAll shares these among its keys.
package hashmap
