//go:build !purego && !race && !msan && !asan

package mem

import "golang.org/x/sys/cpu"

// Skewed reports whether dst lies to src in such a way that a long copy by the processor's string instructions, by which a kernel copies, takes many times as long
// as others: 1 to 31 bytes further behind the beginning of a page, on Zen 3 and Zen 4 (glibc's bug 30994). Copy has no such places.
func Skewed(dst, src uintptr) bool { return stumbles && (dst-src)&(pageBytes-1)-1 < 31 }

const pageBytes = 4096

// stumbles says that this processor is one of AMD's family 19h, with string instructions that its kernel will use.
var stumbles = cpu.X86.HasERMS && isAMD() && family() == 0x19

// isAMD reports whether the instruction CPUID says so.
func isAMD() bool {
	_, b, c := cpuid(0, 0)
	return b == 0x68747541 && c == 0x444d4163 // "Auth", "cAMD"
}

// family is the processor's (AMD64 Programmer's Manual 3, E.3.2).
func family() uint32 {
	a, _, _ := cpuid(1, 0)
	if base := a >> 8 & 0xf; base != 0xf {
		return base
	}
	return 0xf + a>>20&0xff
}
