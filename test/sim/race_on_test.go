//go:build race

package sim

// many is how many ranks the large runs have: in virtual time only one goroutine runs at any moment, so under the race
// detector they are slow and show nothing that fewer do not.
const many = 64

// machines is how many models what is the same on all is run with.
const machines = 1
