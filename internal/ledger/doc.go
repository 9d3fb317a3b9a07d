// Package ledger keeps what was measured on a machine for later programs there, so that these need not measure it again.
//
// # Terms
//
//   - Ledger: a directory with a page for each kind.
//   - Kind: what has to be the same for a page to be of use: the machine, as Machine tells it, how the program was built, and whatever the one who measures adds, such as
//     the NIC and its limits. Machines of one kind, as the nodes of a cluster, share a page, if they see the same directory.
//   - Page: what was measured, as JSON, in a file of its own, with its kind in full and the time.
//
// # Life of a page
//
// Open says whether a directory can be a ledger at all. Who needs what a page tells reads it, and goes by it; who finds none measures, and writes it. Who deletes the file has it
// measured anew.
//
// # Invariants
//
//   - A page is what one writer has written, whole: it comes to its place by a rename. The last writer's stays.
//   - What is no page of the kind that is asked for, a page of another version among it, is as if it were not there, but for an error that says why.
//
// # Concurrency
//
// A Ledger is a value. Any number of goroutines, processes and machines may read and write.
//
// # Limits
//
// A page is a MiB at most. Nothing says that a machine has become faster or slower since.
package ledger
