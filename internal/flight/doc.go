// Package flight carries out one rank's transfers of memory that is not registered: in pipes, through slots of registered workspace, and where the
// other side's memory is not registered either, through leases of such workspace. It gives package superpipe, which plans and copies,
// what that needs of a rank: operations, messages, registrations, and who waits. Which transfers go this way is package proto's
// to choose; whose memory it is, too.
//
// # Terms
//
//   - Pipe, chunk, offer, grant, lease, origin, target: as in package superpipe.
//   - Flight: a transfer in a pipe of this rank's: a put, a get of registered memory, or what another rank gets through a lease.
//   - Pull: a get of this rank's through a lease of its own workspace, into which the owner puts.
//   - Trip: which way a transfer goes. Cargo: what one lease carries, perhaps in many pieces.
//   - Ground: memory of another rank that has a key for each of its parts, buckets, of which the right to use them is asked for first.
//   - Note: a message about a lease that must get to a rank for as long as that lives.
//   - Tail: the end of a transfer that a helper registers while the head is being copied.
//
// # Life of a flight
//
// Begin takes a pipe, which is entered at once, so that a flush waits for it and nothing is ordered behind it, and has its first chunk copied and posted.
// From then on whoever polls moves it along (Advance). Its chunks are pieces of package nic with names of their own, so that a mended connection
// carries them again. A flight over ground (BeginOn) posts nothing before that is there, and copies meanwhile, in slots that it leaves enough of
// to others, since their end may be what its ground waits for. A put's handle is done when all is copied, a get's when all is there. When the pipe is done, and its helper is, the flight ends.
//
// # Life of a transfer through a lease
//
// A put sends an offer (ToPut); the target's handler leases it workspace if there is some now. The put is a flight from the
// beginning, so its first chunk is copied meanwhile, and it goes on when the grant is there. A get leases this rank's own workspace to the
// owner (ToGet), whose handler begins the flight. The poller of who receives copies behind the NIC and acknowledges chunks by writes.
// Neither is reported by a NIC that keeps data in order, so while there are leases somebody looks instead of sleeping (Watchful). When the flight is
// over its rank returns the lease (ToReturn), and may use the place of the acknowledgements again when that is answered. A rank that does not
// know whether its get was begun has it stopped (ToStop) before the memory is the user's again. What is told no lease now has not happened:
// the caller goes another way.
//
// # Invariants
//
//   - X1: the memory of a flight, or of a pull, is its owner's again when its handle is done, and not before, whatever fails.
//   - X2: but for those with leases, each flight that has its ground waits for something that the NIC will report. It has that until its pipe
//     is done, and gives it back before its waiter is told.
//   - X3: a lease is nobody else's before its origin has nothing in flight into it, nor is the place of its acknowledgements
//     before the target has none on its way: either may be posted again after it was done (package nic: N4). So the origin returns leases, and
//     asks again until the target agrees, or is gone.
//   - X4: the failure of a flight is told once: by its handle, or by a flush where that was done before.
//   - X5: workspace that is leased to nobody is given up when room for registrations is needed, by age among what peers use.
//
// # Lock order
//
//	Flights.mu            (flights, pulls, notes; never held across a wait, a post or a registration)
//	  superpipe's, by Origin.Begin and Reuse and what asks a Pipe
//	  nic's mu
//	superpipe's Pipe.stepping, lease.mu  (chunks and acknowledgements are posted under them)
//	  nic's later.mu, mu
//	room.mu               (short; nothing is taken under it)
//
// # Limits
//
// A pipe outlives the call: memory that may lie on a stack is not for it. A rank takes in four transfers through leases at once unless Config says
// otherwise. A NIC that may pin little has smaller slots, or none. Workspace is each rank's own, and so is what bounds it: what a process may
// lock, and regmgr's budget, are by process, so no limit of a node stands above them that R ranks could exceed together. A node of R ranks that are
// all asked for leases registers R workspaces, for each four leases (MostLeases) 1.5 MiB or an eighth of what the rank may pin, whichever is less,
// until somebody needs the room. Where it is memory that a node lacks, a registration is refused, and the lease with it (Unready).
package flight
