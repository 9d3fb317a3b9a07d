// Package firehose keeps account of remote registrations: which pieces of other ranks' memory this rank may read and
// write with RDMA alone, and which of its own it keeps registered for them. With it memory may be exposed that is larger
// than what may be registered. It is after Bell and Bonachea, "A New DMA Registration Strategy for Pinning-Based High
// Performance Networks" (2003), and what GASNet has made of it since.
//
// The package is accounting only: it starts nothing, sends nothing, touches no memory and knows no NIC. Its user lends it
// a Registrar, which registers, and a Mover, which sends, and hands it what arrives.
//
// # Terms
//
//   - Origin: the rank that reads and writes. Target or owner: the rank whose memory it is.
//   - Unit: the smallest bucket, a power of two of at least a page. All budgets are counted in units.
//   - Bucket: a piece of a Range that is registered as a whole, 2^order units long. Its weight is what it is charged. The
//     origin chooses the order for each range by how it uses it; the target takes any.
//   - Share (F): the units that each rank may have registered of each other rank, at any time.
//   - Firehose: one bucket's worth of that right, attached to a bucket. As long as it is, the owner keeps the bucket registered.
//   - Hit: all buckets are held; no message. Miss: some are not. Join: the missing ones are asked for already.
//   - Move: the message of a miss: buckets wanted, and idle ones given up for them.
//   - Idle: held by the origin but not in use. Victim: registered by the owner but held and used by nobody (V units at most).
//     Both queues are in the order of last use, and the oldest goes first.
//   - Own part: what is charged to the owner: buckets with local uses, and victims.
//   - Local use: the owner's own transfers go from or to a bucket, which is registered for it (Server.Pin) if it is not for a peer. Here it is
//     regmgr's cache that pins: Server.Around says which bucket serves a transfer, and Server.Shed and Oldest have victims go by age
//     beside the cache's regions. A bucket that the cache lets go of is no victim, since the cache has kept it as long as that paid.
//
// # Life of a put
//
// The origin asks its Holder for the buckets. On a hit it has the keys, posts the writes and releases the request when
// they are complete at the target. On a miss the Holder plans a move, which Send hands to the Mover. At the target the
// Server counts the new firehoses first and the old ones off after that, so that a bucket which is in both lists, or
// which comes back from the victims, is not registered anew; then it has victims beyond its limit deregistered, then the
// new ones registered, and answers with keys. The handler waits for nothing: all it ever deregisters is used by nobody, and
// if a bucket is being registered by somebody else the move is put aside and counts as not arrived yet. The reply makes
// the request Ready, and whoever joined it.
//
// A registration that the machine refuses is tried again after victims have gone, and then refused to the origin: the
// new buckets are taken back, the old ones stay given up, the request Failed, and the caller sends a message instead. A
// put of at most 3 KiB may travel in the move; the owner's CPU stores it even if it cannot register.
//
// Who predicts uses may ask ahead of them (Holder.Ahead): an idle firehose that is needed later, or of which no use is expected,
// moves, and none that is needed earlier. A use that comes before the answer joins. Whether the buckets of a request were asked for ahead
// of it (Foreseen) or had to be moved for it (Missed) it tells; who asks for buckets that others will use says so (Request.Early).
//
// # Invariants
//
//   - F1: at every instant at most Share for each peer and V are registered.
//   - F2: the own part is within its limit, but for what is being deregistered.
//   - F3: a bucket is a victim exactly if it is registered and nobody uses it; no other is deregistered.
//   - F4: no count of firehoses is ever negative, in whatever order moves arrive: what a move gives up was granted before.
//   - F5: a peer holds at most its share, whichever of its moves have arrived: what a move gives back beyond what it
//     takes is used again only after the reply.
//   - F6: a firehose is idle exactly if it is held and no request refers to it; only idle ones are given up.
//   - F7: a held firehose's bucket is registered and counted at its owner. When nothing is under way the two ends agree.
//   - F8: a waiting request is blocked, or hangs on exactly one pending bucket, and on none when nothing is under way.
//
// Builds that check invariants (package invariants) count F2 to F6 again after some calls.
//
// # Lock order
//
// A Holder has no lock: its caller's, which a transfer takes anyway, guards it. A Server has one, which is never held
// while the Registrar works, so nothing is ever acquired under it.
//
// # Limits
//
// A range's memory must stay mapped until Server.Withdrawn. A request may ask for MaxBuckets at once; Holder.Piece cuts
// longer ones, and each piece must be posted before the next is asked for. Requests that find too few idle firehoses are
// served in order of arrival, and nobody overtakes them. Tables grow and shrink with what is in them:
// where a quarter of a table's records remain they are moved together, so each removal pays for less than half a move. A Server's wait
// with that until no Registrar is at work.
package firehose
