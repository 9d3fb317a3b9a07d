package mem

// LargePage is the size of what the kernel calls a huge page on most machines, bytes; and makeLarge how much memory begins where one does. What it takes to begin there
// is a half of that at most, and stays untouched.
const (
	LargePage = 2 << 20
	makeLarge = 2 * LargePage
)

// Make returns so many bytes of zeroed memory for a NIC to use, at an address that is a multiple of 8. Much of it is in large pages, where the kernel has some: the
// processor finds them sooner, who copies between processes or registers looks fewer up, and in a virtual machine whose host makes the kernel's view of memory page by
// page, as the kernel first looks, that is some microseconds for 2 MiB and not for each 4 KiB. The memory is the collector's.
func Make(bytes int) Range { return MakeFrom(bytes, 0) }

// MakeFrom is Make of which only what lies behind so many bytes is in large pages: what lies before is as memory of a program's own.
func MakeFrom(bytes, from int) Range {
	words := (bytes + 7) / 8
	if bytes-from < makeLarge {
		return Of(make([]uint64, words)).Slice(0, bytes)
	}
	all := Of(make([]uint64, words+LargePage/8))
	r := all.Slice(int(-(all.Addr()+uint64(from))%LargePage), bytes)
	inLargePages(r.Slice(from, (bytes-from)&^(LargePage-1)))
	return r
}
