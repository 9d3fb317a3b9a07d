package main

import (
	"fmt"
	"slices"
	"strings"
)

// What --pin takes. A whole process on one core is what MPI launchers do when they bind to cores; thread leaves the
// runtime's helpers free.
const (
	pinAuto    = "auto"
	pinProcess = "process"
	pinThread  = "thread"
	pinOff     = "off"
)

func checkPin(how string) error {
	all := []string{pinAuto, pinProcess, pinThread, pinOff}
	if !slices.Contains(all, how) {
		return fmt.Errorf("--pin %q: want one of %s", how, strings.Join(all, ", "))
	}
	return nil
}

// pinning is what was bound, and how to undo it.
type pinning struct {
	what    string
	release func()
}

// choosePin resolves auto: each rank of the node has a core, or as many of them share one as another, which the kernel would not see to: of four
// ranks that yield to each other it leaves three on one of two cores.
func choosePin(how string, ranksHere int) string {
	if how != pinAuto {
		return how
	}
	if ranksHere > 1 {
		return pinProcess
	}
	return pinOff
}

// choosePassivePin resolves auto where a rank serves others while its program computes: on one core with the computing goroutine the
// serving threads would get a turn when the kernel's scheduler takes the core away from it, some 3 ms, whatever the library does.
func choosePassivePin(how string) string {
	if how == pinAuto {
		return pinThread
	}
	return how
}
