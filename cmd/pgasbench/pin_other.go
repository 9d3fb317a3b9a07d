//go:build !linux

package main

import (
	"fmt"

	"gopgas/pgas"
	"gopgas/transport"
)

// pin has nothing to bind with here.
func pin(how string, w *pgas.World) (pinning, error) {
	none := pinning{"not pinned", func() {}}
	if how = choosePin(how, 1); how != pinOff {
		return none, fmt.Errorf("--pin %s: %w", how, transport.ErrUnsupported)
	}
	return none, nil
}

// onCores has nothing to bind with here.
func onCores(n int, _ func() error) error {
	return fmt.Errorf("%d cores for a process: %w", n, transport.ErrUnsupported)
}
