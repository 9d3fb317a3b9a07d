// Package superpipe moves large transfers from or to memory that is not registered. They are copied through slots that
// are, in chunks that grow, so that the copy of each chunk hides behind the transfer of the one before: A. Denis, "A
// High-Performance Superpipeline Protocol for InfiniBand" (Euro-Par 2011). The first use of a buffer is as fast as any.
//
// # Terms
//
//   - Chunk: what one operation of the NIC carries. A Plan cuts a transfer into chunks: C_i = C_0*q^i until a slot is
//     full (model.go has the paper's equations, plan.go both regimes).
//   - Slot: registered memory for a chunk. An Origin has a pool of them; a transfer uses N (Fold) in turn.
//   - Lease: N slots of a Target's workspace, for one transfer into its unregistered memory.
//   - Block, grid, flag: a chunk into a lease is 4096-byte blocks, each with a flag in its last word (grid.go);
//     what makes no whole block is a short one, the first of the last chunk, which begins late instead of ending early.
//   - Spread: memory in many pieces that one transfer with a lease gathers from or scatters to; its layout goes with the Offer, or the
//     Grant of a get, as stripes of equal pieces equally far apart.
//   - Way: how a target learns of chunks in its workspace: flags where the NIC keeps data in order, else a write with
//     immediate per chunk.
//   - Acknowledgement: a word in the origin's memory into which the target writes how many chunks it has copied out.
//
// # Life of a put
//
// Begin cuts it: the first chunk so small that its copy, which hides behind nothing, is short even if the source is in no cache, and so large that the
// next one's hides behind it (PlanPut). Each Step posts what is ready and copies one more chunk into a slot. Sourced says that all is copied:
// the caller's buffer is free, and Put returns. What the NIC reports frees slots; when all is reported the put is done.
//
// A target that becomes known later (its firehoses move) is told by Reach; the first chunk is copied meanwhile. It may have a key
// for each stretch of its memory (Keys): a chunk takes an operation for each that it lies in. A target that is never registered is sent an Offer, leases workspace and answers with a Grant; then its Progress copies
// block by block behind the NIC and acknowledges each chunk, and the put is done when the last one is.
//
// A source that is registered is not copied: a chunk for a lease is gathered from where it lies, with flags from a slot, by several
// operations if need be (gather.go).
//
// While chunks are copied a helper may register what comes later; told by Pinned from which byte on, the pipe copies up
// to there and sends the rest directly.
//
// # Life of a get
//
// Reads are posted into free slots, several at once; what has arrived is copied out. The last chunk's copy is exposed,
// so chunks shrink. No one-sided operation reads unregistered memory: such a get is a put of the owner's, into a lease that the getter
// has granted before it was offered anything (Expect, Offered), and is over when Outcome says so.
//
// # Invariants
//
//   - B1: chunk i is posted when i-(N-1) is acknowledged: by the NIC, or by the target whose slot it goes to.
//   - B2: a slot, and the caller's memory where the NIC uses it, belong to the NIC until it has reported. A pipe that
//     nobody holds stays in its origin's table, and Progress brings it to its end.
//   - B3: a flag is a generation and a sequence number, so no place of the grid ever expects a value that it held
//     before; payload never lies on the grid, so none can look like a flag.
//   - B4: a workspace keeps to one Way for its life: chunks with an immediate would put payload on the grid.
//   - B5: a lease ends when its last acknowledgement has left the NIC, or, where leases are kept (Config.Kept: what a broken connection
//     flushes is posted again), when its origin returns it; or when its origin is lost and the connection with it. Then no write of
//     that origin can land in it. The place of its acknowledgements is used again when nothing can land there. Where a NIC does not
//     keep the order of writes only one acknowledgement of a kept lease is under way at a time.
//   - B6: chunks cover a transfer without gap or overlap, and none is longer than a slot, whatever the model says.
//   - B7: a workspace is registered or deregistered only while no lease is out (Prepare, Reclaim).
//   - B8: chunks of a Spread are gathered, and scattered, in the order of its bytes, each byte once. A layout from a message has no
//     piece outside of the memory that the message is about.
//   - B9: pipes that do not know their keys yet leave Fold slots to others, whose end they may have to wait for.
//
// # Lock order
//
//	Pipe.stepping, lease.mu   (try-lock where it is long: the copy of one chunk is made under them)
//	  Origin.mu, Target.mu    (short)
//	    Pipe.mu, inbox.mu
//
// The NIC's Post, Register and Deregister are called under the first two. Begin takes a reused pipe's stepping under
// Origin.mu: whoever else has it sees that the older transfer is done, and lets go.
//
// # Limits
//
// Fold, slots and Way are equal on all ranks. A lease takes transfers of up to 64 GiB. Baselines (Policy) other than
// registration run through the same pipe, so that what differs is the plan; those that register do so with the NIC,
// without a cache, and copy where it refuses. The caller says for how long Go memory that they register stays.
package superpipe
