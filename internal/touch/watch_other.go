//go:build !linux || !amd64

package touch

import (
	"fmt"
	"runtime"

	"gopgas/internal/mem"
)

// Watch sees the first touches of pages; here there is none, and nobody has one.
type Watch struct{}

// Open returns an error: it takes Linux on amd64.
func Open() (*Watch, error) {
	return nil, fmt.Errorf("%w on %s/%s", ErrUnseen, runtime.GOOS, runtime.GOARCH)
}

// Kernel reports whether system calls may be given watched memory.
func (w *Watch) Kernel() bool { return false }

// Add fails.
func (w *Watch) Add(mem.Range) (mem.Range, error) { return mem.Range{}, ErrUnseen }

// Remove fails.
func (w *Watch) Remove(mem.Range) error { return ErrUnseen }

// Pending reports that there is nothing to take.
func (w *Watch) Pending() bool { return false }

// Take takes nothing.
func (w *Watch) Take(func(Touch)) (lost int) { return 0 }

// Rearm does nothing.
func (w *Watch) Rearm() error { return nil }

// Close does nothing.
func (w *Watch) Close() error { return nil }

// Free does nothing.
func (w *Watch) Free() error { return nil }

func alloc(int) (mem.Range, func() error, error) { return mem.Range{}, nil, ErrUnseen }
