//go:build !linux

package shm

import (
	"fmt"
	"runtime"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// Mapper is the transport.Mapper of a rank that is a process of its own. Only Linux has it.
type Mapper struct{}

var _ transport.Mapper = (*Mapper)(nil)

// Open returns an error wrapping ErrUnsupported.
func Open(Config) (*Mapper, error) { return nil, errSystem() }

// Name is "shm".
func (*Mapper) Name() string { return "shm" }

// Alloc returns an error wrapping ErrUnsupported.
func (*Mapper) Alloc(int) (mem.Range, transport.Token, error) { return mem.Range{}, nil, errSystem() }

// Free returns an error wrapping ErrUnsupported.
func (*Mapper) Free(mem.Range) error { return errSystem() }

// Map returns an error wrapping ErrUnsupported.
func (*Mapper) Map(transport.Token) (mem.Range, error) { return mem.Range{}, errSystem() }

// Unmap returns an error wrapping ErrUnsupported.
func (*Mapper) Unmap(mem.Range) error { return errSystem() }

// Close does nothing.
func (*Mapper) Close() error { return nil }

// Stats is zero.
func (*Mapper) Stats() Stats { return Stats{} }

func errSystem() error {
	return fmt.Errorf("shared memory between processes: %w: %s", transport.ErrUnsupported, runtime.GOOS)
}

// ReadLimits knows no limits here: all are Unlimited.
func ReadLimits(Roots) Limits { return unlimited() }

// machine reads no limits here.
type machine struct{}

func newMachine(Roots) *machine { return &machine{} }

func (*machine) check(n need) error { return checkLimits(n, unlimited()) }
