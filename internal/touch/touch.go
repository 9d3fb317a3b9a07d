package touch

import (
	"errors"

	"gopgas/internal/mem"
)

// Most is how many touches a Watch remembers until they are taken.
const Most = 4096

// ErrUnseen says that touches cannot be seen here; the errors that wrap it say why.
var ErrUnseen = errors.New("page faults cannot be watched")

// Touch is the first touch of a page since the last Rearm, or its first write after touches that only read.
type Touch struct {
	Addr   uint64 // of a byte that was touched: the first one on its page of the instruction's
	Write  bool
	Atomic bool // by an instruction that locks the bus; it writes
	// PCs are return addresses as runtime.Callers gives them, from the innermost call on, as far as they could be made out; none:
	// it is not known who has touched.
	PCs []uintptr
}

// Alloc returns bytes of zeroed memory that can be watched, for ranks that are goroutines, and what gives it back. Its pages are taken
// from the machine at once. It fails where Open does; a caller that does without then takes other memory.
func Alloc(bytes int) (mem.Range, func() error, error) { return alloc(bytes) }
