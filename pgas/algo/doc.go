// Package algo has algorithms over global arrays in which all members of a team take part, of the kind that a program would otherwise write out of
// one-sided operations itself. It is made of what programs see too, so it may serve as an example.
//
// # Terms
//
//   - Local elements: those of the array that a member owns.
//   - Sample: elements picked at equal distances from a member's sorted local ones.
//   - Splitter: a sample that begins the bucket of a member; the first member's has none.
//   - Bucket: what lies between two splitters, in the whole array; each member sorts one.
//   - Run: the part of a bucket that comes from one member, in order already.
//
// # Life of a sort
//
// Each member sorts its local elements in place. Samples go to all, and all pick the same splitters. A member cuts its elements at the splitters; a
// prefix sum over the members tells it where its run begins in each bucket, and it puts the runs there without asking their owners. A fence; then
// each member merges the runs of its bucket, and puts the result to where it belongs in the array, whatever the layout. A fence ends the sort.
//
// # Invariants
//
//   - G1: splitters are told apart by value, member and place, so buckets are balanced however many elements are equal: a bucket has at most
//     twice its share of the elements and an element for each member, or three times where some members have more than others (pure: file
//     split.go).
//   - G2: a run's place is that run's only; no two puts of a sort overlap.
//   - G3: nobody writes to the array before all have put away what they had there.
//
// # Lock order
//
// There are no locks.
//
// # Limits
//
// A sort takes room for the largest bucket on every member, and as much again there for the merge. Elements that are equal come in no
// particular order. After an error the array's elements are undefined. Calls are collective, and the team is one that can allocate: not that of
// a started call.
package algo
