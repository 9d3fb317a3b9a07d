// Package errand is what a rank has another rank's CPU do to memory that it has exposed: how that is written into the arguments and
// the payload of an active message, which of it may be done, and the doing. It knows no NIC, sends nothing, and waits for nothing:
// package proto carries errands, and calls Perform where they arrive.
//
// # Terms
//
//   - Errand: one message of a Kind: an atomic, elements to be combined, bytes to be stored or loaded, or a list.
//   - Key: the name by which peers know memory of this rank: the NIC's, or one that stands in its place.
//   - List: elements at any places of one memory, each with its address and operand. It is done as a whole or not at all.
//   - Verdict: OK; Refused, for what the memory or its elements do not allow; Malformed, for what no rank of this program would ask.
//   - Answer: what goes back: old values, or bytes.
//
// # Life of an errand
//
// The origin has its arguments written (ForAtomic, ForElements, ForBytes, ForList; SetEntry for a list's payload), with the key and
// the address that it knows from the target's card. The target's handler looks the key up in its Memories, and holds that memory,
// so that it is not taken away meanwhile. Perform checks all there is to check before it touches anything, acts, writes the answer,
// and says how long that is. What it says goes back with the answer.
//
// # Invariants
//
//   - Q1: whatever the message says, only bytes of the memory that its key names are touched, and only as many of the answer's as
//     are returned.
//   - Q2: what is refused or malformed has changed nothing.
//   - Q3: a word is stored and loaded as one; elements are combined by the CPU's atomics, as everybody else's on that memory are.
//   - Q4: when Forget returns nothing is at work on the memory, and nothing begins.
//
// # Lock order
//
//	Memories.mu  (for reading while an errand is done; what a handler takes under it is its own affair)
//
// # Limits
//
// A message carries what am.MaxPayload says: up to 4 KiB, some 250 elements of a list. Who writes an errand has checked that its
// answer fits.
package errand
