package pgastest

import (
	"context"
	"fmt"
	"testing"

	"gopgas/pgas"
)

// Example is Run for Example functions, which have no *testing.T: what a rank returns as an error is printed, so that
// the output is not what it should be.
func Example(n int, f func(ctx context.Context, w *pgas.World) error) {
	Run(example{}, n, f)
}

// example is the part of a testing.TB that Run uses.
type example struct{ testing.TB }

func (example) Helper()                  {}
func (example) Context() context.Context { return context.Background() }

func (example) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// Fatalf is called when ranks hang; there is nothing to go on with.
func (example) Fatalf(format string, args ...any) {
	// bug: an example whose ranks wait for each other
	panic(fmt.Sprintf(format, args...))
}
