//go:build !race

package races_test

// detector: Go's race detector does not watch.
const detector = false
