package soft

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// TestBoardLayout: no two things on a board overlap, and all lie inside.
func TestBoardLayout(t *testing.T) {
	for _, size := range []int{1, 2, 63, 64, 65, 200} {
		b := board{size: size, regions: 64}
		used := make([]string, boardBytes(size, 64))
		mark := func(what string, off, bytes int) {
			for i := off; i < off+bytes; i++ {
				require.Empty(t, used[i], "%s at %d, size %d", what, i, size)
				used[i] = what
			}
		}
		mark("head", 0, headBytes)
		mark("bell", offBell, 8)
		for w := range b.words() {
			mark("asked", b.askedOff()+8*w, 8)
			mark("news", b.newsOff()+8*w, 8)
		}
		for r := range size {
			mark("accept", b.acceptOff(r), 8)
			mark("link", b.linkOff(r), lineBytes)
			mark("hazard", b.hazardOff(r), lineBytes)
			mark("record", b.recordOff(r), recordBytes)
			for i := range mailSlots {
				require.Zero(t, b.mailOff(r, i)%lineBytes)
				mark("mail", b.mailOff(r, i), mailBytes)
			}
		}
		for i := range 64 {
			mark("entry", b.entryOff(i), entryBytes)
		}
	}
}

func TestOpenBoard(t *testing.T) {
	n := nonce{4, 5}
	fresh := func() board {
		b := board{mem: mem.Of(make([]uint64, boardBytes(3, 16)/8)), size: 3, regions: 16}
		b.initialise(n)
		return b
	}
	b, err := openBoard(fresh().mem, 3, n)
	require.NoError(t, err)
	require.Equal(t, 16, b.regions)
	for name, spoil := range map[string]func(b *board){
		"magic":            func(b *board) { b.word(offMagic).Store(1) },
		"nonce":            func(b *board) { b.word(offNonce2).Store(1) },
		"size":             func(b *board) { b.word(offSize).Store(4) },
		"no regions":       func(b *board) { b.word(offRegions).Store(0) },
		"regions":          func(b *board) { b.word(offRegions).Store(15) },
		"too many regions": func(b *board) { b.word(offRegions).Store(1 << 40) },
		"too short":        func(b *board) { b.mem = b.mem.Slice(0, 4096) },
		"cut":              func(b *board) { b.mem = b.mem.Slice(0, b.mem.Bytes-8) },
	} {
		b := fresh()
		spoil(&b)
		_, err := openBoard(b.mem, 3, n)
		require.Error(t, err, name)
	}
}

func TestBoardAllows(t *testing.T) {
	b := board{mem: mem.Of(make([]uint64, boardBytes(2, 8)/8)), size: 2, regions: 8}
	m := mem.Of(make([]byte, 1000))
	const key, can = 77<<16 | 5, uint64(transport.RemoteRead | transport.RemoteWrite)
	require.False(t, b.allows(5, m.Addr(), 0, 8, 0), "an empty slot has no key")
	b.publish(5, key, m, can)
	for _, c := range []struct {
		what  string
		slot  int
		addr  uint64
		key   uint64
		n     int
		need  transport.Access
		allow bool
	}{
		{"all", 5, m.Addr(), key, 1000, transport.RemoteRead, true},
		{"the last byte", 5, m.Addr() + 999, key, 1, transport.RemoteWrite, true},
		{"nothing at the end", 5, m.Addr() + 1000, key, 0, transport.RemoteWrite, true},
		{"one behind", 5, m.Addr() + 1000, key, 1, transport.RemoteWrite, false},
		{"one before", 5, m.Addr() - 1, key, 1, transport.RemoteWrite, false},
		{"overflow", 5, ^uint64(0), key, 2, transport.RemoteWrite, false},
		{"right", 5, m.Addr(), key, 1, transport.RemoteAtomic, false},
		{"key", 5, m.Addr(), key + 1<<16, 1, transport.RemoteRead, false},
		{"slot", 6, m.Addr(), key, 1, transport.RemoteRead, false},
	} {
		require.Equal(t, c.allow, b.allows(c.slot, c.addr, c.key, c.n, uint64(c.need)), c.what)
	}
	b.withdraw(5)
	require.False(t, b.allows(5, m.Addr(), key, 1, uint64(transport.RemoteRead)))
}

// TestCompletionQueue compares it with a slice, through several growths.
func TestCompletionQueue(t *testing.T) {
	var q completions
	q.init(4)
	put, got := uint64(0), uint64(0)
	out := make([]transport.Completion, 7)
	for round := range 3000 {
		for range (round*7 + round/100) % (5 + round/200) {
			put++
			q.push(entry{c: transport.Completion{Cookie: put}})
		}
		require.Equal(t, put > got, q.ready())
		n, _ := q.pop(out[:round%8])
		for _, c := range out[:n] {
			got++
			require.Equal(t, got, c.Cookie)
		}
		require.Equal(t, min(int(put-got)+n, round%8), n)
	}
}

// TestCompletionQueueConcurrently fills and empties at the same time.
func TestCompletionQueueConcurrently(t *testing.T) {
	var q completions
	q.init(2)
	const all = 50_000
	go func() {
		for i := range uint64(all) {
			q.push(entry{c: transport.Completion{Cookie: i}})
		}
	}()
	out := make([]transport.Completion, 16)
	deadline := time.Now().Add(30 * time.Second)
	for want := uint64(0); want < all; {
		n, _ := q.pop(out)
		for _, c := range out[:n] {
			if c.Cookie != want {
				require.Fail(t, "order", "%d after %d", c.Cookie, want)
			}
			want++
		}
		require.False(t, n == 0 && time.Now().After(deadline), fmt.Sprint(want))
	}
}

func TestPace(t *testing.T) {
	c := &Config{Latency: 100, Bandwidth: 1e9} // a byte takes a nanosecond
	var p pace
	plan := func(now time.Duration, bytes int) [2]int64 {
		begin, due := p.plan(now, bytes, c)
		return [2]int64{begin, due}
	}
	require.Equal(t, [2]int64{1100, 1100}, plan(1000, 0))
	require.Equal(t, [2]int64{1100, 1600}, plan(1000, 500), "500 bytes take 500 ns")
	require.Equal(t, [2]int64{1600, 1650}, plan(1010, 50), "behind them on the wire, the latency at once")
	require.Equal(t, [2]int64{5100, 5101}, plan(5000, 1), "the wire is idle again")
}
