// Package spread describes memory in many pieces that is one end of one transfer: rows of a matrix, every other element, pieces
// anywhere.
//
// # Terms
//
//   - Piece: bytes that lie side by side. The bytes of a transfer are those of the pieces, one piece after the other.
//   - Stripe: pieces of one length that lie equally far apart, in either direction. Pieces that adjoin are one.
//   - Layout: the stripes as a message tells them, numbers of variable length; docs/wire-formats.md has the format.
//   - Place: how far a transfer has got.
//
// # Life of a spread
//
// Whoever begins a transfer makes a Spread of its own memory and another one of the other rank's, of which it knows only places, and adds
// the pieces in the order of the transfer. The second one's layout goes into the request; Parse makes of it a Spread of memory there.
// Then one side gathers portions of any length out of its pieces, and the other scatters them to its own.
//
// # Invariants
//
//   - R1: no piece lies outside of the memory that the Spread was made for, whatever a message says.
//   - R2: a Place moves on by what was gathered or scattered, so each byte is moved once, in order.
//
// # Concurrency
//
// A Spread that nobody changes may be used by several goroutines, each with a Place of its own.
//
// # Limits
//
// Where pieces coincide, the bytes of the last one stay. A transfer has less than 2^40 bytes.
package spread
