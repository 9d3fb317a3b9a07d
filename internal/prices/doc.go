// Package prices is what transfers over a NIC cost on this machine: published constants at first, then what was measured, once, and
// what transfers have really taken since. Package selector chooses by them; package proto asks, and makes the transfers.
//
// # Terms
//
//   - Prices: the costs of one NIC as a selector of protocols, as tables for small puts and gets, and as what was learned.
//   - Machine, query, protocol, trial: as in package selector. Slot, bypass, site: as in package eager.
//   - Past the slots: from or to the user's memory, registered, of a transfer that a slot of the bounce pool could hold.
//   - Habits: which small buffers the program uses often, and behind which of its puts a flush follows at once.
//   - Kind of peer: this rank, one of its node, one of another node; each with its memory in buckets or not. What is learned is learned by it.
//   - Cold: of memory that is in no cache, since others have been touched since that fill it. Beyond: so long that neither end finds room there.
//   - New to the NIC: of memory that only the program has touched. Where a kernel moves the bytes, in a virtual machine, each page of it may cost more once.
//   - What caches hold: within so much memory copies are as quick as within less. The kernel's word is not taken for it: a machine may have its share.
//   - Run: puts of one kind to one rank that are not flushed yet. What they cost is told together with their flush.
//
// # Life of the prices
//
// Published needs nothing but the NIC's capabilities. In virtual time nothing is measured: there a machine says what it costs, and Told
// takes it at its word. When some transfers have been made the
// engine calls Measure, which takes three steps. Package superpipe fits a model to writes and reads between both halves of
// some memory of this rank, to copies and to registrations. Package eager measures copies and look-ups, with the difference between
// few bytes through a slot and past it. What memory takes more that is new to the NIC is told by puts of such, each made twice. Then tune has pipes cut by the model, makes transfers of several sizes by
// each protocol, by turns, and writes down by how much they differ from the model so far: a part for the size, and one for each byte behind the first chunk; and
// some of puts before one flush, whose waits lie beside each other, as they are (Machine.Runs). Those
// of which many that take turns find room in a cache come first, from memory that is always the same. The longer ones come from cold memory, which
// is registered for each try where the NIC uses it; and some have it at both ends, whose pace is that of all beyond (what is shorter goes on in proportion). Of sizes some of
// whose turns find room and some not it is the mean of both. What a registration costs is told by short transfers that made one. The rank's own transfers go on meanwhile, by
// the prices that there were.
//
// At the next large transfer to another rank Toward follows, in memory that this lends: what writes and reads take there, and by what factors whole transfers of a
// few sizes differ from those at home.
//
// What was measured can be said to others with the same NIC on the same machine: Sheet and FromSheet. The estimates change no more after that. Learned does: the engine notes there what a get that somebody waited for has
// cost.
//
// # Life of a put that may be learned of
//
// When a small one is made as the one before it in its run was, it goes like that, unasked (Alike), and is taken to cost what those do that are asked about:
// some of a run. One that a flush is thought to follow goes as the one before it that was asked about (GoesOn). A large one goes through slots unasked where many
// before it did, of memory that was used once (Passes).
// When it is chosen for, FlushFollows predicts by its call site whether it is waited for, and tells the run before it: within a
// run all travel alike (Again). When it is over Put adds it to the run. Flush ends the run of a rank; when the flush is over
// the time of all is noted (Flushed), divided by their number. A run that is long is noted without a flush, one that began with
// others in flight is not noted at all. A short trial ends its run itself: Put returns that, and who made the put waits for all of it; else a
// program that flushes seldom would make hundreds of puts by what only might be cheaper.
//
// # Invariants
//
//   - G1: Prices never change, but for Learned; who has them can go on with them while others are measured.
//   - G2: what Measure transfers is between parts of memory that is its caller's own, and of a peer it only reads.
//   - G3: where anything cannot be measured there is an error and nothing is made up: the published constants stay, with the reason.
//   - G4: Habits neither wait nor allocate; where a flush would be no news they take no lock.
//   - G5: Habits predict nothing before Begin: while costs are unknown no put is taken for one that a flush follows.
//
// # Lock order
//
//	Habits.mu  (nothing is taken under it)
//
// # Limits
//
// What is measured is one goroutine's, beside the rank's own, on a machine as busy as it happens to be: of each thing the least or the lower quartile counts,
// and of whole transfers the median, of tries in five passes over all of them. Of the peers only the first is measured. A run has at most 256 puts.
package prices
