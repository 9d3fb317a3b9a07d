//go:build race

package races_test

// detector: Go's race detector watches. Between goroutine ranks it sees real races too, and fails the test.
const detector = true
