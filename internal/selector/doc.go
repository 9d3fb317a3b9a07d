// Package selector chooses how a put or get over a NIC travels: the protocol that costs its caller least, by one cost
// model, out of a table.
//
// # Terms
//
//   - Protocol: one way to carry out a transfer, from inline to a lease of the target's workspace.
//   - Query: what is known of a transfer when it is called: its size, who waits, what is registered at either end, and
//     how many transfers a registration would serve.
//   - Machine: the capabilities and measured costs of a NIC and of the memory around it.
//   - Class: sizes that share an answer, four to a factor of two; the limits at which a protocol ends divide classes.
//
// # Life of an answer
//
// Select turns a query into the number of an entry. The first who asks for an entry has it computed: each protocol's
// Cost in the middle of the class, from the equations of package superpipe and of A. Denis (Euro-Par 2011) for what is
// cut into chunks. Everybody else reads it.
//
// What firehoses move first costs a message there and back and the owner's registrations; the copies of a put hide behind that, and what
// several moves take hides behind the transfers of those before.
//
// What each of many puts takes that are flushed together is measured as it is (Machine.Runs), since how much of one lies beside the next no model says.
//
// Learned stands before Select for large transfers: by kind of transfer it keeps what each protocol has cost, in place of its
// estimate, and has one that may be cheaper than is believed tried at times. Of what is registered at both ends and waited for no other way than
// Direct is thought to be the cheaper, since it copies besides, before it was seen to be, by more than a twentieth, and before Direct was seen more than in a few bad moments. Where Direct is sure to be the cheapest that is said (Surely
// before anything is learned, Sure by what was), so that not each transfer need be asked about.
//
// What many puts cost that are flushed together is told with their flush: a Trial goes on from put to put (Again), its cost is
// noted once, and when a kind's cheapest has been seen often enough only some are timed. Trials of what seems dearer are short (ShortTrial),
// and have a stake: what those of one protocol were believed to cost beyond the cheapest is no more than
// one in a hundred of the transfers so far, for a first one four, and of many grows no faster than their root.
//
// # Invariants
//
//   - C1: Select is a pure function: equal queries to selectors of equal machines have equal answers, whoever asks and when.
//   - C2: an answer can carry the query out; None is given only where nothing can.
//   - C3: a limit (inline payload, message, slot) is exact: no size of a class beyond one shares the answer below it.
//   - C4: neither Select nor Cost nor Learned waits, takes a lock, or allocates.
//   - C5: what Learned chooses can carry the query out too. Trials of what is dearer add 4 % to the
//     first thousand transfers of a kind, 1 % to ten thousand, and less and less; what turns out dearer than anybody believed, once more.
//
// # Limits
//
// Within a class the answer is that of its middle: it costs up to 30 % more than the best. What a transfer is worth to
// later ones is known in three steps only: this one alone, some (2 to 15), many.
package selector
