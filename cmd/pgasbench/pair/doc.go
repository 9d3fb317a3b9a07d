// Package pair times the library's own transfers between two ranks in virtual time: puts with their flush, and gets, between memory that
// is registered at both ends and between memory that is registered at neither.
//
// # Terms
//
//   - Pair: two engines (package proto) on nodes of their own, over simulated NICs with a model's constants.
//   - Registered: both ends are, since before; the NIC reads and writes them itself.
//   - Leased: neither end is used by the NIC. A put goes through a lease of the target's workspace, a get through one of the getter's:
//     the rendezvous, the copies at both ends, and all acknowledgements are part of what it takes.
//
// # Life of a measurement
//
// The engines expose memory to each other, as windows do. The first rank puts and gets each size twice, so that what is registered is
// found registered the second time, and the second time counts: from the call of the put to the return of its flush, from the call of
// the get to its return. What arrived is compared; the other rank computes nothing and waits.
//
// # Invariants
//
//   - A1: wrong bytes, or a transfer that did not travel as it should, are an error, and no figure.
//   - A2: what comes out depends on the model and the sizes only.
//
// # Limits
//
// Transfers that are not large (64 KiB and less) never take leases, so sizes begin above that.
package pair
