//go:build !race

package sim

// many is how many ranks the large runs have.
const many = 1024

// machines is how many models what is the same on all is run with.
const machines = 2
