package mem

// Copy copies min(len(dst), len(src)) bytes from src to dst and returns how many, as the builtin does; the two may overlap. They must be
// memory without pointers: the collector is not told. What is shorter than Long is left to the builtin. It allocates nothing.
func Copy(dst, src []byte) int {
	if len(src) >= Long {
		return copyLong(dst, src)
	}
	return copy(dst, src)
}

// CopyRange is Copy of src to dst, which is as long. A word takes two instructions.
func CopyRange(dst, src Range) {
	if dst.Bytes == 8 && src.Bytes == 8 {
		*(*[8]byte)(dst.Base) = *(*[8]byte)(src.Base)
		return
	}
	copyRange(dst, src)
}

//go:noinline
func copyRange(dst, src Range) { Copy(dst.Data(), src.Data()) }

// way is how bytes are copied.
type way int

const (
	builtin  way = iota // the Go runtime's: at most AVX, and from pastCaches on past the caches
	asUsed              // through the caches or past them, by how the destination is used
	wide                // a loop over registers of 64 bytes
	byString            // the processor's own instruction for long copies
)

// Where the ways part, in bytes.
const (
	// fromString: below it, what starts the instruction costs more than it saves; from here on it takes half of what loops take if the
	// lines of the destination are in another core's cache, as those of a target are that has read them.
	fromString = 8 << 10
	// piece is about what one call of an assembly function copies at most. The collector cannot stop a goroutine in the middle of one, and this is
	// 4 to 15 us. It can do so between two pieces, but not in the builtin.
	piece = 256 << 10
	// fromUsed: below it, less is to be had than is lost where a destination is taken for one that is not used again.
	fromUsed = 256 << 10
	// pastCaches is from where on the builtin stores past the caches (runtime/memmove_amd64.s).
	pastCaches = 1 << 20
)

// choose returns the way for n bytes from src to dst on processor p.
func (p processor) choose(dst, src uintptr, n int) way {
	overlap := dst-src < uintptr(n) || src-dst < uintptr(n)
	switch {
	case n < Long, overlap: // the others begin at the front, whatever that overwrites
		return builtin
	case n >= fromString && p.byString:
		return byString
	case n <= piece && p.wide:
		return wide
	case n >= fromUsed && n <= p.cached:
		return asUsed
	}
	return builtin
}

// processor is what choose must know about the one that it runs on.
type processor struct {
	wide, byString, past bool
	cached               int // bytes that may go through its caches
}
