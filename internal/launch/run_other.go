//go:build !linux

package launch

import (
	"context"
	"fmt"
	"runtime"
)

// Run needs Linux: process groups that die with their launcher are made of its system calls.
func Run(context.Context, Spec) (Result, error) {
	return Result{}, fmt.Errorf("starting ranks is not supported on %s: it needs Linux", runtime.GOOS)
}
