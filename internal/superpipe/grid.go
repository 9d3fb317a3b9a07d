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
	lastGeneration = 1<<(62-sequenceBits) - 1

	// maxCopied is the longest transfer in sub-blocks, in bytes: that of all sequence numbers.
	maxCopied = Payload << sequenceBits
)

// What a flag says beside its block's number.
const (
	endFlag   = 1 << iota // the last block of a chunk
	shortFlag             // a block with what makes no whole block of the transfer; the first of the last chunk
	markBits  = iota
)

// flag is the value of block seq of the transfer of a generation.
func flag(generation uint64, seq int, marks uint64) uint64 {
	return generation<<(sequenceBits+markBits) | uint64(seq)<<markBits | marks
}

// blocks is how many blocks n payload bytes take.
func blocks(n int) int { return fewest(n, Payload) }

// lead is how many bytes of its first block a chunk of n bytes leaves unused. A chunk that does not fill its blocks begins
// with the short one, whose payload lies before the flag: so the wire carries no more than payload and flags, in one write,
// and flags stay on the grid. It begins on a word, as the flags do.
func lead(n int) int { return (blocks(n)*Payload - n) &^ (flags - 1) }

// first is how many bytes of payload the first block of a chunk of n bytes holds.
func first(n int) int { return n - (blocks(n)-1)*Payload }

// layOut copies payload into slot, leaving room for the flags.
func layOut(slot, payload mem.Range) {
	at, n := lead(payload.Bytes), first(payload.Bytes)
	mem.Copy(slot.Slice(at, n).Data(), payload.Slice(0, n).Data())
	for b := 1; n < payload.Bytes; b++ {
		mem.Copy(slot.Slice(b*Block, Payload).Data(), payload.Slice(n, Payload).Data())
		n += Payload
	}
}

// seal sets the flags of a chunk of n bytes that begins with block seq of its transfer.
func seal(slot mem.Range, n int, generation uint64, seq int) {
	last := blocks(n) - 1
	for b := range last + 1 {
		marks := uint64(0)
		if b == 0 && first(n) < Payload {
			marks |= shortFlag
		}
		if b == last {
			marks |= endFlag
		}
		slot.Word64(b*Block + Payload).Store(flag(generation, seq+b, marks))
	}
}

// landed reports whether block b of slot is the one of the given sequence number, and how it is marked. The load is the
// acquire that the payload is read behind.
func landed(slot mem.Range, b int, generation uint64, seq int) (here bool, marks uint64) {
	const all = endFlag | shortFlag
	f := slot.Word64(b*Block + Payload).Load()
	return f&^all == flag(generation, seq, 0), f & all
}
