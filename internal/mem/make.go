package mem

// LargePage is the size of what the kernel calls a huge page on most machines, bytes. Of memory of makeLarge bytes and more the part that is such pages is made of
// them; from makeAligned on it begins where one does, for which a part of one stays untouched.
const (
	LargePage   = 2 << 20
	makeLarge   = 2 * LargePage
	makeAligned = 8 * LargePage
)

// Make returns so many bytes of zeroed memory for a NIC to use, at an address that is a multiple of 8. Much of it is in large pages, where the kernel has some: the
// processor finds them sooner, who copies between processes or registers looks fewer up, and in a virtual machine whose host makes the kernel's view of memory page by
// page, as the kernel first looks, that is some microseconds for 2 MiB and not for each 4 KiB. The memory is the collector's.
func Make(bytes int) Range { return MakeFrom(bytes, 0) }

// MakeFrom is Make of which only what lies behind so many bytes, a multiple of 8, is in large pages: what lies before is as memory of a program's own.
func MakeFrom(bytes, from int) Range {
	words, skip := (bytes+7)/8, 0
	if bytes >= makeAligned {
		words += LargePage / 8
	}
	all := Of(make([]uint64, words))
	if bytes >= makeAligned {
		skip = int(-(all.Addr() + uint64(from)) % LargePage)
	}
	r := all.Slice(skip, bytes)
	if bytes-from >= makeLarge {
		inLargePages(r.Slice(from, bytes-from).large())
	}
	return r
}

// large is the part of a range that is large pages.
func (r Range) large() Range {
	skip := int(-r.Addr() % LargePage)
	return r.Slice(skip, (r.Bytes-skip)&^(LargePage-1))
}
