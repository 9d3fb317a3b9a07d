//go:build !linux

package softnic

import (
	"fmt"
	"math"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// noLimit stands for a limit that there is not.
const noLimit = math.MaxInt64

func raiseMemlock() (int64, error) { return noLimit, nil }

func lockPages(mem.Range) error {
	return fmt.Errorf("lock memory: only on Linux: %w", transport.ErrUnsupported)
}

func unlockPages(mem.Range) error { return nil }

func (p *Pins) refused(_ mem.Range, _ int64, err error) error { return err }
