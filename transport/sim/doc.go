// Package sim is a NIC in virtual time: the machine that it belongs to is a Model, its program the real protocol code
// above the seam. It stands on internal/sched's third body, in which all ranks of a world are coroutines; RunSim of
// package pgastest puts the two together.
//
// # Terms
//
//   - Fabric: a machine of nodes with one NIC each, which the ranks of the node share.
//   - Model: what everything costs. LogGP for the network (latency L, overhead o, gap g, time per byte G, by kind of
//     operation), straight lines for registration, speeds by length for copies. Every model names its source and says
//     which of its constants are assumed.
//   - Port: a NIC's sender, its receiver, and its unit for atomics. Each does one thing at a time.
//   - Flight: one operation from Post to its report.
//
// # Life of an operation
//
// Post charges o to the processor and hands the operation to the node's NIC at the poster's time. The NIC sends it when
// its sender is free, which is then taken for its bytes (G each) and the gap g. After the latency L (and a delay, if
// Faults has one) it is at the target's NIC, behind all earlier ones of its endpoint. There
//
//   - a write waits for the receiver, takes it for its bytes, and lands in pieces of Model.Fragment, each at its moment;
//   - a read takes the bytes at once, and sends them back as if they were a write's;
//   - an atomic is performed, and keeps the unit for atomics busy;
//   - a message waits for a receive buffer, and all behind it wait with it; then it lands like a write.
//
// The poster's NIC knows the end L later (for a read, when the bytes are there) and reports it when all earlier ones of
// the endpoint are reported. Taking the completion costs Model.Reap. Alone on its way, a write of k bytes posted at 0 is
// visible at o + L + kG and reported at o + 2L + kG; a read is reported at o + 2L + Target + kG.
//
// The processor is busy for what it is charged: o, registration (which the caller waits for), copies, and what a
// program charges. All of that runs beside the NIC. Bytes really move, at the moment at which they land.
//
// # Faults
//
// Delays keep the order of an endpoint. With Reorder, writes become visible in any order, Caps says so, and reports keep
// their order. A broken connection flushes what was not performed. A killed rank never runs again; what is on its way
// to it ends when Model.Detect has passed.
//
// # Invariants
//
//   - N1: what happens is decided by the program, the Config and the simulation's seed. Counts.Trace is a hash of all of
//     it with its times; addresses and keys are not in it.
//   - N2: nothing is concurrent: only who has the simulation's token calls a domain, so nothing here is locked. The
//     conformance suite, whose ranks are goroutines, makes every call under one lock.
//   - N3: a poll that finds nothing, again and again, takes virtual time, so that a program which asks instead of waiting
//     does not stop the world.
//
// # Limits
//
// The wire has no switches and no packets: two streams meet in a port or not at all. A copy is not slowed down by a
// transfer beside it. A rank of several goroutines has a processor for each. A charge that has not been waited for yet
// (see Sim.SetExact) lets Close, Deregister and Disconnect take effect up to that much too early.
package sim
