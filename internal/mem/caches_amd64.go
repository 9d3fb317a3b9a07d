//go:build !purego && !race && !msan && !asan

package mem

// cached is the length up to which a copy goes through the caches: a quarter of the last one, and where many threads share that no more than twice their part.
var cached = func() int {
	last, sharers := lastCache()
	return min(last/4, 2*last/sharers)
}()

// lastCache returns the size in bytes of the processor's last cache, and how many threads share it, as the instruction CPUID tells; 0 where it does not.
func lastCache() (bytes, sharers int) {
	for _, leaf := range [...]uint32{0x8000001d, 4} { // AMD's, Intel's: the same table (AMD64 Programmer's Manual 3, E.4.16; Intel's Manual 2A, CPUID)
		highest, _, _ := cpuid(leaf&0x80000000, 0)
		for i := uint32(0); highest >= leaf && i < 8; i++ {
			a, b, c := cpuid(leaf, i)
			if a&31 == 0 { // no more
				break
			}
			if kind := a & 31; kind == 1 || kind == 3 { // data, unified
				bytes = int(b>>22+1) * int(b>>12&0x3ff+1) * int(b&0xfff+1) * int(c+1)
				sharers = int(a>>14&0xfff + 1)
			}
		}
		if bytes > 0 {
			return bytes, sharers
		}
	}
	return 0, 1
}

// cpuid is the instruction.
func cpuid(leaf, sub uint32) (a, b, c uint32)
