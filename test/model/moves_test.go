package model

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// A trace of large transfers is a list of moves for each rank. Each rank has a lane in every rank's part, which it alone writes and reads
// back; so what a lane holds follows from its owner's moves, and every rank computes it.

const (
	lane = 2 << 20       // bytes
	most = 1<<20 + 1<<10 // bytes of a move
	kept = 2             // buffers of a rank that it uses again and again
)

// moveKind is a call of package window.
type moveKind uint8

const (
	movePut moveKind = iota
	movePutNB
	movePutRows
	moveGet
	moveGetNB
	moveGetRows
	moveKinds
)

// move is a transfer between a buffer of a rank and its lane in a target's part.
type move struct {
	kind      moveKind
	to, at    int
	rows, row int // so many rows of so many bytes
	pitch     int // between the beginnings of rows in the lane
	shift     int // of the buffer, from a word
	buffer    int // one of those that are used again; negative: a new one
	payload   uint64
	flush     bool // a put is flushed, not only put in order
}

func (m move) bytes() int { return m.rows * m.row }

func (m move) puts() bool { return m.kind < moveGet }

func (m move) inRows() bool { return m.kind == movePutRows || m.kind == moveGetRows }

// edges are lengths at which something changes: the blocks that carry flags, and their payload; slots, of the pool and of pipes, and as
// many of them as a pipe folds.
var edges = []int{1, 7, 8, 4087, 4088, 4089, 4096, 64<<10 - 1, 64 << 10, 64<<10 + 1, 128 << 10, 128<<10 + 1, 96 * 4088, 3*128<<10 + 5}

// movesOf returns n moves of a rank. The first two are a put and a get of a megabyte, eight times what a slot of a pipe holds, with
// another rank where there is one.
func movesOf(seed uint64, rank, ranks, n int) []move {
	rng := rand.New(rand.NewPCG(seed, 0xb16+uint64(rank)))
	all := make([]move, n)
	for i := range all {
		m := move{
			kind: moveKind(rng.IntN(int(moveKinds))), to: rng.IntN(ranks), rows: 1, shift: rng.IntN(16), buffer: rng.IntN(2*kept) - kept,
			payload: rng.Uint64(), flush: rng.IntN(2) == 0,
		}
		switch m.row = edges[rng.IntN(len(edges))]; {
		case i < 2:
			m.kind, m.to, m.row = []moveKind{movePut, moveGetNB}[i], (rank+1)%ranks, most-rng.IntN(64)
		case rng.IntN(2) == 0:
			m.row = 1 + rng.IntN(1<<(8+rng.IntN(13)))
		}
		m.pitch = m.row
		if m.inRows() {
			m.rows = min(m.row, 1+rng.IntN(9))
			m.row /= m.rows
			m.pitch = m.row + rng.IntN(5000)
		}
		m.at = rng.IntN(lane - m.rows*m.pitch + 1)
		all[i] = m
	}
	return all
}

// payloads are what moves carry pieces of: random words, and what the flags in blocks look like. They are made once, for copies are cheap
// under the race detector and words are not.
var payloads = sync.OnceValue(func() (p [2][]byte) {
	rng := rand.New(rand.NewPCG(0xb16, 0))
	for range (most + payloadShift) / 8 {
		v := rng.Uint64()
		p[0] = binary.LittleEndian.AppendUint64(p[0], v)
		p[1] = binary.LittleEndian.AppendUint64(p[1], (1+v%4)<<26|uint64(len(p[1])/4088)<<2|v>>62)
	}
	return p
})

// payloadShift is how far apart the payloads of moves may begin.
const payloadShift = 1 << 20

// fill writes a move's payload.
func (m move) fill(b []byte) { copy(b, payloads()[m.payload%2][m.payload>>32%(payloadShift/8)*8:]) }

// put is what a put does to its lane, and get what a get brings from it.
func (m move) put(to, payload []byte) {
	for i := range m.rows {
		copy(to[m.at+i*m.pitch:][:m.row], payload[i*m.row:])
	}
}

func (m move) get(from, into []byte) {
	for i := range m.rows {
		copy(into[i*m.row:][:m.row], from[m.at+i*m.pitch:])
	}
}

// partAfter returns what a rank's part holds when every rank has made n moves.
func partAfter(seed uint64, rank, ranks, n int) []byte {
	all := make([]byte, lane*ranks)
	payload := make([]byte, most)
	for origin := range ranks {
		for _, m := range movesOf(seed, origin, ranks, n) {
			if m.puts() && m.to == rank {
				m.fill(payload[:m.bytes()])
				m.put(all[origin*lane:], payload)
			}
		}
	}
	return all
}
