// Package atom says what an atomic operation does to an element, and does it to mapped memory with the CPU. It knows no ranks and
// no NIC: package proto decides who performs an operation, here is what comes out, the same on every way.
//
// # Terms
//
//   - Element: 1, 2, 4 or 8 bytes of an integer or floating-point type, at a multiple of its size.
//   - Bits: an element as a word of 64 bits, whose upper ones are 0.
//   - Operand: what an element is combined with. CompareSwap has two: what is expected, and what is stored then.
//   - Around: the aligned word that holds an element narrower than what the CPU's compare-and-swap takes.
//
// # Life of an operation
//
// Whoever lets an operation in asks Elem.Check once whether it is defined, and Elem.Fits where an address comes from a peer. Do then
// reads the word, combines, and swaps it in, until nobody has changed it meanwhile. A NIC's own atomics and the engine's loops over
// its compare-and-swap use Combine alone. Fold is for reductions: plain memory, element by element.
//
// # Invariants
//
//   - T1: the result depends on the bits and the type only, not on who performs the operation: wrap-around and rounding are Go's.
//   - T2: bytes beside an element are never changed, not even to what they were, without a compare-and-swap that saw them.
//   - T3: Fold of a kind of element gives what Combine gives, bit by bit, NaNs and signed zeros included.
//
// # Lock order
//
// There are no locks. Any goroutine may call anything at any time; memory that is used with Do is used with Do, or with what is atomic
// with it, by all.
//
// # Limits
//
// Complex numbers and structs have no operations. Elements must not cross the aligned word around them.
package atom
