package soft

import "gopgas/internal/mem"

// Some processors take five times as long for what the kernel copies where one place lies badly to the other (mem.Skewed), as a row and the same shifted by an element
// may. Such a copy makes a detour, by way of a buffer that lies to the other process's place as one page does to the next; between the two places of this
// process the copy is mem's.
const (
	detourLeast = 4 << 10 // bytes; what is shorter is not worth it
	detourBytes = 64 << 10
	pageBytes   = 4096
)

// skewed reports whether a copy between here and as many bytes at addr makes a detour.
func skewed(out bool, here mem.Range, addr uint64) bool {
	if here.Bytes < detourLeast {
		return false
	}
	dst, src := here.Addr(), addr
	if out {
		dst, src = addr, here.Addr()
	}
	return mem.Skewed(uintptr(dst), uintptr(src))
}

// detour copies all of here out to addr in process pid, or in from there, by way of the buffer.
func (m *mover) detour(out bool, pid int, addr uint64, here mem.Range) error {
	if m.between == nil {
		m.between = make([]byte, detourBytes+pageBytes)
	}
	for at := 0; at < here.Bytes; {
		there := addr + uint64(at)
		part := here.Slice(at, min(detourBytes, here.Bytes-at))
		shift := (there - mem.Of(m.between).Addr()) & (pageBytes - 1)
		between := mem.Of(m.between).Slice(int(shift), part.Bytes)
		if out {
			mem.CopyRange(between, part)
		}
		m.pair(0, between, there)
		if err := m.all(out, pid, there, m.here[:1], part.Bytes); err != nil {
			return err
		}
		if !out {
			mem.CopyRange(part, between)
		}
		at += part.Bytes
	}
	return nil
}
