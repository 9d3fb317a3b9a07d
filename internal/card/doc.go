// Package card is what the members of a group tell each other about memory that they expose: where each part lies, how it can be
// reached, and what went wrong. Package proto fills cards in and acts by them; here is how they travel.
//
// # Terms
//
//   - Member, group: ranks that expose memory together, numbered from 0. Rank: of a member, in the world.
//   - Part: what one member exposes. Of attached memory there is only one.
//   - Token: by which another process of the same node maps a part.
//   - Key: by which a NIC reaches it, or, where it is registered in buckets or not at all, messages to its owner name it.
//   - Vote: a card that says nothing but whether its member maps all others, and what failed.
//
// # Life of a card
//
// Each member makes one of its own part, and Exchange, over whatever all-gather the group has, gives it everybody's. FirstFailure says
// the same on every member: what the first one that failed has to tell, but for a member's own error, which keeps its type. A second
// exchange is the vote on the outcome of the first. The card of attached memory travels as data of the program instead, and is
// read by Decode when somebody reaches for the memory.
//
// # Invariants
//
//   - K1: Decode of what Encode has written is equal, but for the error, of which the text (400 bytes at most) and, of transport's
//     sentinels, the first that it wraps remain.
//   - K2: what Decode accepts has no negative size, and no part of it lies outside of what it was given.
//   - K3: nothing here keeps or changes what it was given.
//
// # Lock order
//
// There are no locks. Exchange waits as the group's all-gather does.
//
// # Limits
//
// Tokens and addresses have at most 65535 bytes. The offsets are in docs/wire-formats.md.
package card
