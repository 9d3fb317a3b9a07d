// Package shape lays out who talks to whom in the collectives of a team: it knows where the members lie, and nothing of memory or
// messages. All functions are pure.
//
// # Terms
//
//   - Member: a rank of a team, by its number there. Node: a machine, by any number that tells it from others.
//   - Flat: a team whose members are all on one node, or all on nodes of their own, or share no memory: they are all alike.
//   - Levels: the other teams. The first member of each node leads the node.
//   - Phase: a dissemination among some members. In round k each tells the one 2^k places after it, in a circle;
//     a few that are near may all tell each other at once instead.
//   - Slot: what one member contributes to a gather.
//
// # Life of a shape
//
// Of makes it once for a team, from the members' nodes; it does not change. A barrier carries out its phases in order; a gather adds
// a read to each round, and asks Gathered how many slots there are to read, and Order which is whose in the end.
//
// # Invariants
//
//   - S1: members that go through their phases have each heard, perhaps by way of others, from all.
//   - S2: in the phases of all members each area names the same members in the same order, node by node.
//   - S3: Order is a permutation of the members, and what Gathered says to read was there before the round.
//
// # Lock order
//
// There are no locks; a Shape may be read by anybody at any time.
//
// # Limits
//
// A shape takes memory for a list of the members; Of takes time in proportion to them.
package shape
