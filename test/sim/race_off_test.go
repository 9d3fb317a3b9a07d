//go:build !race

package sim

// many is how many ranks the large runs have.
const many = 1024
