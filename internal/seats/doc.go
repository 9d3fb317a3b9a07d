// Package seats decides which ranks of a node have a registration helper and which idle core it shares: the policies of
// Li, Cameron, Nikolopoulos, de Supinski and Schulz (CF'11, section 5) as pure functions, and the board in memory shared
// by the node on which ranks tell each other what they have registered.
//
// # Terms
//
//   - Idle core: one on which no rank computes. A node of C cores with R ranks has C - R of them.
//   - Seat: a rank's helper's place on an idle core. A rank without one leaves its memory registered under the limit.
//   - Unshared: as many idle cores as helpers or more; each has its own, whatever the policy.
//
// # Life of a seat
//
// Every PostEvery uses a rank posts its registered bytes and the median period of their uses. A helper looks at the
// board now and then and works out all seats; since all of a node's helpers compute the same from the same posts, nobody
// hands seats out. Two that look while a post changes may both hold a core until they look again: that costs
// time on a core, nothing else.
//
// Beside the posts the board has a word for what one rank of a node does at a time, such as measuring: Take and Leave. A rank that is gone
// does not keep the turn.
//
// # Invariants
//
//   - I1: no idle core, no helper. A rank's own core is never shared with a helper by intent.
//   - I2: a core's helpers differ by at most one from those of any other (aggressive), or are one at most (conservative).
//   - I3: the same node and posts give the same seats; ties fall by the seed. Where the ranks of a node share no memory
//     there are no posts, so the seed alone decides, for all alike.
//
// # Limits
//
// What the kernel's scheduler does with several helpers on a core is assumed to be round robin: equation 2.
package seats
