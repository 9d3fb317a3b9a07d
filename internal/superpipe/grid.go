package superpipe

import "gopgas/internal/mem"

// The grid of sub-blocks (section 4, "Sub-blocking"): a chunk is one write of blocks, each with a flag in its last
// word. Flags lie on the grid and nowhere else, payload never does.
const (
	Block   = 4096          // bytes of a block
	Payload = Block - flags // payload bytes of a block
	flags   = 8
)

// Generations count transfers into one workspace, sequence numbers the blocks of one transfer. A flag is both, so that
// no flag has to be reset: each place of the grid expects another value the next time it is used, and a generation is
// never zero, which is what a fresh workspace holds.
const (
	sequenceBits   = 24
	lastGeneration = 1<<(63-sequenceBits) - 1

	// maxCopied is the longest transfer in sub-blocks, in bytes: that of all sequence numbers.
	maxCopied = Payload << sequenceBits
)

// flag is the value of block seq of the transfer of a generation; end marks the last block of a chunk.
func flag(generation uint64, seq int, end bool) uint64 {
	f := generation<<(sequenceBits+1) | uint64(seq)<<1
	if end {
		f |= 1
	}
	return f
}

// blocks is how many blocks n payload bytes take.
func blocks(n int) int { return fewest(n, Payload) }

// layOut copies payload into slot, leaving room for the flags. A short last block keeps its flag on the grid: what lies
// between is sent with it and means nothing.
func layOut(slot, payload mem.Range) {
	for b := range blocks(payload.Bytes) {
		at := b * Payload
		part := payload.Slice(at, min(Payload, payload.Bytes-at))
		copy(slot.Slice(b*Block, part.Bytes).Data(), part.Data())
	}
}

// seal sets the flags of the n blocks of a chunk that begins with block seq of its transfer.
func seal(slot mem.Range, n int, generation uint64, seq int) {
	for b := range n {
		slot.Word64(b*Block + Payload).Store(flag(generation, seq+b, b == n-1))
	}
}

// landed reports whether block b of slot is the one of the given sequence number, and whether it ends its chunk. The
// load is the acquire that the payload is read behind.
func landed(slot mem.Range, b int, generation uint64, seq int) (here, end bool) {
	f := slot.Word64(b*Block + Payload).Load()
	return f&^1 == flag(generation, seq, false), f&1 != 0
}
