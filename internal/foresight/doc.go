// Package foresight decides of which uses of other ranks' buckets the predictor is told, and gives buckets the numbers by which it
// knows them. It is for who keeps firehoses, beside a NIC and in a replay alike, and decides only: it moves, sends and predicts nothing.
//
// # Terms
//
//   - Use: an operation is about to use a bucket. Several in a row on one bucket are one use.
//   - Site: a call site of the program, by a hash of its stack.
//   - Told: the predictor hears of the use. Its caller pays a time stamp, a look-up here and an entry of the queue; the helper a hash
//     and an insertion; and all other predictions one entry less of a queue that is short.
//   - Miss: the use found that its bucket was not held, and waits for a move. Saved: it would have, but that was asked for ahead.
//   - Trial: so many uses of a site as it takes to judge it, all told. Rest: uses that are not told, before the first trial and after one
//     that was not worth it.
//
// # What is worth a prediction
//
// For memory of its own a rank goes by size: small transfers are copied and never need a registration, so they are no uses at all. A
// bucket of another rank's memory is needed by small operations too, and a miss costs them most, as a part of what they take. A walk
// of single words through more buckets than may be held is worth foreseeing; the same words put at random are not, since no signature
// comes twice. What tells the two apart is the outcome, by call site (Worth): a site is told of as long as
//
//	(untold miss rate * told uses - told misses) * miss  >=  told uses * tell
//
// where miss is what a move takes and tell what it costs to be told of a use (Costs), and something that was asked for ahead was used.
// Misses are counted, not what was asked for ahead: a walk round one bucket more than may be held misses always, and is saved by one
// move a round, since what is needed last is given up first. Where nothing of a rank was ever given up for want of room everything that was
// used is held, and nobody need ask here (firehose.Holder.Pressed).
//
// # Life of a site
//
// A site rests first: the rate of its misses is that of uses of which nobody is told. A trial is four times as many uses as buckets are
// known here: the predictor learns a cycle in two rounds, and saves from the third on; if it has saved nothing by the end of that the trial is
// over. A site that has paid for itself goes on. One that has not rests for as many uses as the trial had, then twice as many, up to sixteen times: random sites are told of once in seventeen uses
// in the end, and one that becomes regular is noticed.
//
// # Invariants
//
//   - W1: a number stands for one bucket of one rank's range for as long as it is known.
//   - W2: where the cost of a miss is not known every use is told.
//   - W3: the same uses give the same answers.
//
// # Concurrency
//
// A Table belongs to whoever holds its owner's lock. Nothing waits; a new bucket allocates.
//
// # Limits
//
// MostTargets buckets are known at a time. Beyond that all are forgotten, and learnt anew. Sites are told apart by eight bits of their
// hash: those that fall together are judged together.
package foresight
