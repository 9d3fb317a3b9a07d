// Package trace is a record of the transfers of a job: what each rank did, when, from where in the program, with which
// memory and with whom. A trace is a directory with one file per rank; replays read it in virtual time.
//
// # Terms
//
//   - Event: one transfer: time of the call and how long it took, kind, address, bytes, peer, call stack, and where in the
//     peer's memory.
//   - Range: memory that a peer exposes, by the number of the exposure. Who exposes memory again after it was freed has
//     another range, also at the same address.
//   - Stack: return addresses of the call, innermost first. A file lists each stack once; events name it by number.
//   - Chunk: a piece of memory of a Recorder that takes events until it is full.
//   - Lost: events for which the recorder had no room.
//
// # Life of an event
//
// The data path fills in an Event and calls Recorder.Add: a copy into a chunk. When a chunk is full the next one takes
// its place; when there is none the event is lost and counted. Somebody beside the data path calls Recorder.Flush
// now and then, and once at the end: it finds equal stacks, encodes, and writes.
//
// # Format, version 2
//
// All integers are base-128 varints (encoding/binary), signed ones zigzag. A file is the eight bytes "PGASTRC2", then
// rank, ranks and node, then records: a byte that says what it is, then
//
//	'S'  a new stack: number of entries, entries; stacks are numbered from 0 in the order in which they come
//	'R'  a new range: number of the exposure, address at its owner, bytes; ranges are numbered from 1 in their order
//	'E'  an event: time minus that of the event before (signed), how long it took, kind (a byte), number of its stack,
//	     address, bytes, peer (signed), number of its range or 0, and if that is not 0 the offset in it
//	'L'  events lost up to here, in all
//	'Z'  the end: number of events
//
// Version 1 ("PGASTRC1") has no ranges, and its events end with the peer. It is still read.
//
// Events come in the order in which their transfers completed, not in that of their calls.
//
// # Invariants
//
//   - T1: Add never waits for a disk, does not allocate and takes one short lock.
//   - T2: a file without its 'Z' record is the trace of a rank that did not end well; what is there can be read (ErrCut).
//   - T3: reading takes memory in proportion to the file, whatever is in it.
//
// # Limits
//
// MaxStack return addresses, 2^31 - 1 ranks, times of 2^63 nanoseconds.
package trace
