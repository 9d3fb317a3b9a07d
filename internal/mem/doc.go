// Package mem is the one place below the public edge where memory is handled by address.
//
// Everything else passes Ranges: a base and a length in bytes, which keep Go memory alive (the base is a
// pointer) and say nothing about who owns it. Typed views, atomic words and the copy of raw bytes are made
// here, so that a reader who looks for unsafe code has one file to read; so are the fences, and Prefetch, for
// which Go has no word.
//
// # Terms
//
//   - Range: bytes in this process's address space. Go heap, a mapping of this process, or a peer's memory
//     mapped here; a Range does not know which. OriginOf finds out as much as a NIC must know.
//   - Name: what memory is remembered by in virtual time instead of its address. Names are given in the order in which
//     they are asked for.
//   - Elem: an element type without pointers. The collector does not see what a peer or a NIC writes, so a
//     pointer stored remotely would dangle; CheckElem refuses such types once, at creation.
//
// # Invariants
//
//   - M1: a Range never grows. Slice narrows and panics like a slice where it would not.
//   - M2: an atomic word lies on its natural boundary; Word64 and Word32 panic otherwise, because a
//     misaligned atomic is torn on some machines and never completes on some NICs.
//
// # Copies
//
// Copy is the builtin for bytes without pointers, and for long ones whatever this processor copies them fastest with
// (docs/adr/0009). Everything that moves a transfer's bytes uses it, and so does what measures copies.
//
// # Making
//
// Make is where memory comes from that a NIC or a peer is to use: windows, slots, what messages come into. Much of it is in large pages. It is the collector's, as
// that of a program's own buffers, which the runtime makes in small ones.
//
// Nothing here allocates except Make, CheckElem's error and Names, nothing blocks, and all functions but those of Names are safe for
// concurrent use as far as the bytes they touch are.
package mem
