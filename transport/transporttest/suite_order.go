package transporttest

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

var orderChecks = []check{
	{"T2/data then flag word", func(t *testing.T, s *suite) { litmus(t, s, flagWord) }},
	{"T2/data then inline flag word", func(t *testing.T, s *suite) {
		need(t, s.caps.MaxInline >= 8, "inline writes of a word")
		litmus(t, s, flagInline)
	}},
	{"T2/data then counter", func(t *testing.T, s *suite) {
		need(t, s.caps.AtomicsCPU, "atomics that the CPU may look at")
		litmus(t, s, flagAtomic)
	}},
	{"T2/data then message", func(t *testing.T, s *suite) {
		need(t, s.caps.Sends, "sends")
		litmus(t, s, flagSend)
	}},
	{"T2/data then immediate", func(t *testing.T, s *suite) {
		need(t, s.caps.WriteImm, "write with immediate")
		litmus(t, s, flagImm)
	}},
	{"T2/a completion implies earlier ones", testImplies},
	{"T2/completions in the order posted", testCompletionOrder},
	{"T2/fence after read and atomic", testFence},
	{"InOrderData/last word last", testInOrderData},
}

// What tells the target that the data before it is there.
type flagKind int

const (
	flagWord flagKind = iota
	flagInline
	flagAtomic
	flagSend
	flagImm
)

// Layout of a litmus slot: data, then the flag on a cache line of its own.
const (
	litmusSlots = 8
	litmusData  = 4096
	litmusSlot  = litmusData + 64
)

// litmus has one rank write data and then a flag, slot after slot; the other rank waits for each flag with
// atomic loads and looks at the data at once.
func litmus(t *testing.T, s *suite, kind flagKind) {
	need(t, s.caps.OrderedWrites, "ordered writes")
	a, b := s.pair(t, litmusSlots*litmusSlot+64)
	a.ep(1)
	b.ep(0)
	var acks atomic.Int64 // rounds that the target has checked
	var failed atomic.Bool
	if kind == flagSend || kind == flagImm {
		for k := range litmusSlots {
			b.postRecv(uint64(k), litmusSlots*litmusSlot, 8)
		}
	}
	together(t, 2, func(i int) (err error) {
		defer func() {
			if err != nil {
				failed.Store(true)
			}
		}()
		if i == 0 {
			return litmusWriter(a, kind, s.opt.Rounds, &acks, &failed)
		}
		return litmusReader(b, kind, s.opt.Rounds, &acks, &failed)
	})
}

// litmusBytes varies the length of the data.
func (s *suite) litmusBytes(round int) int {
	return s.upTo([]int{8, 16, 64, 1000, litmusData}[round%5])
}

// upTo returns n or, where one operation cannot be so long, what it can be in whole words.
func (s *suite) upTo(n int) int { return min(n, s.caps.MaxMessage&^7) }

func litmusWriter(a *node, kind flagKind, rounds int, acks *atomic.Int64, failed *atomic.Bool) error {
	var cookies [litmusSlots]uint64
	for round := range rounds {
		k := round % litmusSlots
		at := k * litmusSlot
		for acks.Load() <= int64(round-litmusSlots) {
			if failed.Load() {
				return nil
			}
			runtime.Gosched()
		}
		if round >= litmusSlots {
			if c, err := a.tryWait(cookies[k]); err != nil || c.Status != transport.StatusOK {
				return fmt.Errorf("round %d: status %d: %w", round, c.Status, err)
			}
		}
		bytes := a.s.litmusBytes(round)
		for w := range bytes / 8 {
			a.mem.Word64(at + 8*w).Store(uint64(round + 1))
		}
		a.mem.Word64(at + litmusData).Store(uint64(round + 1))
		data := quiet(a.op(transport.OpWrite, 1, at, at, bytes))
		flag := a.op(transport.OpWrite, 1, at+litmusData, at+litmusData, 8)
		switch kind {
		case flagInline:
			flag.Flags |= transport.FlagInline
		case flagAtomic:
			flag.Kind, flag.Arg0 = transport.OpFetchAdd, uint64(round+1)
			if round >= litmusSlots {
				flag.Arg0 = litmusSlots
			}
		case flagSend:
			flag.Kind = transport.OpSend
		case flagImm:
			flag.Kind, flag.Imm = transport.OpWriteImm, uint32(round+1)
		}
		cookies[k] = flag.Cookie
		if err := a.tryPost(data, flag); err != nil {
			return err
		}
	}
	for k := range min(rounds, litmusSlots) {
		if _, err := a.tryWait(cookies[k]); err != nil {
			return err
		}
	}
	return nil
}

func litmusReader(b *node, kind flagKind, rounds int, acks *atomic.Int64, failed *atomic.Bool) error {
	for round := range rounds {
		at := round % litmusSlots * litmusSlot
		if kind == flagSend || kind == flagImm {
			c, err := b.await(b.s.opt.Timeout, func(c *transport.Completion) bool { return c.Kind == transport.OpRecv })
			if err != nil {
				return err
			}
			if n, err := b.d.PostRecv([]transport.Recv{{Buf: b.sge(litmusSlots*litmusSlot, 8), Cookie: c.Cookie}}); n != 1 || err != nil {
				return fmt.Errorf("post receive: %d, %w", n, err)
			}
		} else if err := pollFlag(b, at+litmusData, uint64(round+1), failed); err != nil {
			return err
		}
		data := b.mem.Slice(at, b.s.litmusBytes(round))
		for w, v := range mem.Slice[uint64](data) {
			// An ordinary load: the flag has ordered it, and the race detector checks that it has.
			if v != uint64(round+1) {
				return fmt.Errorf("round %d: the flag was there before word %d of %d bytes, which is still %d", round+1, w, data.Bytes, v)
			}
		}
		acks.Store(int64(round + 1))
	}
	return nil
}

func pollFlag(b *node, at int, want uint64, failed *atomic.Bool) error {
	flag := b.mem.Word64(at)
	deadline := time.Now().Add(b.s.opt.Timeout)
	for spins := 0; ; spins++ {
		switch v := flag.Load(); {
		case v == want:
			return nil
		case v > want:
			return fmt.Errorf("flag is %d, wanted %d", v, want)
		case failed.Load():
			return nil
		case spins%64 == 63:
			runtime.Gosched()
			if spins%65536 == 65535 && time.Now().After(deadline) {
				return fmt.Errorf("flag %d never came", want)
			}
		}
	}
}

// testImplies has one signalled operation stand for all before it on its endpoint.
func testImplies(t *testing.T, s *suite) {
	const most = 64
	a, b := s.pair(t, 2*most*128+64)
	for round := range 50 {
		count := 1 + round%min(most, s.caps.MaxPost)
		fill(a.mem, uint64(round))
		ops := make([]transport.Op, 0, count)
		for k := range count {
			kind := transport.OpWrite
			from, to := k*128, k*128
			if k%3 == 2 { // read what the write before it has put there
				kind, from, to = transport.OpRead, (most+k)*128, (k-1)*128
			}
			op := a.op(kind, 1, from, to, 128)
			if k != count-1 {
				op = quiet(op)
			}
			ops = append(ops, op)
		}
		a.post(ops...)
		require.Equal(t, transport.StatusOK, a.wait(ops[count-1].Cookie).Status)
		a.settle(1)
		for k := range count {
			if k%3 == 2 {
				if s.caps.OrderedWrites {
					requirePattern(t, a.mem.Slice((most+k)*128, 128), uint64(round), (k-1)*128, "read %d of %d", k, count)
				}
			} else {
				requirePattern(t, b.mem.Slice(k*128, 128), uint64(round), k*128, "write %d of %d", k, count)
			}
		}
	}
	a.none()
}

// testCompletionOrder mixes kinds and lengths; what is reported comes in the order posted.
func testCompletionOrder(t *testing.T, s *suite) {
	a, _ := s.pair(t, 1<<17)
	a.ep(1)
	sent := make([]uint64, 0, s.opt.Ops/4)
	together(t, 1, func(int) error {
		for k := range cap(sent) {
			// Reads and writes use different local memory: nothing here is fenced.
			kind := k / 3 % 2
			op := a.op([]transport.Kind{transport.OpWrite, transport.OpRead}[kind], 1, kind<<16, 1<<16, s.upTo([]int{8, 60000, 0, 100}[k%4]))
			if k%5 == 1 {
				op = quiet(op)
			} else {
				sent = append(sent, op.Cookie)
			}
			if err := a.tryPost(op); err != nil {
				return err
			}
		}
		return nil
	})
	for i, cookie := range sent {
		c, err := a.await(s.opt.Timeout, func(*transport.Completion) bool { return true })
		require.NoError(t, err)
		require.Equal(t, cookie, c.Cookie, "completion %d", i)
		require.Equal(t, transport.StatusOK, c.Status)
	}
	a.none()
}

// testFence overwrites at once what a read or an atomic before it has fetched.
func testFence(t *testing.T, s *suite) {
	a, b := s.pair(t, 1<<17)
	bytes := s.upTo(8192)
	for round := range uint64(100) {
		fill(b.mem.Slice(0, bytes), round)
		fill(a.mem.Slice(0, bytes), ^round)
		read := quiet(a.op(transport.OpRead, 1, bytes, 0, bytes))
		over := a.op(transport.OpWrite, 1, 0, 0, bytes)
		over.Flags |= transport.FlagFence
		a.post(read, over)
		require.Equal(t, transport.StatusOK, a.wait(over.Cookie).Status)
		a.settle(1)
		requirePattern(t, a.mem.Slice(bytes, bytes), round, 0, "read before a fenced write")
		requirePattern(t, b.mem.Slice(0, bytes), ^round, 0, "fenced write")
		if !s.caps.Atomics64 {
			continue
		}
		// The result of the atomic is the source of the fenced write.
		add := quiet(a.op(transport.OpFetchAdd, 1, 4*bytes, 4*bytes, 8))
		add.Arg0 = 1
		copied := a.op(transport.OpWrite, 1, 4*bytes, 5*bytes, 8)
		copied.Flags |= transport.FlagFence
		a.post(add, copied)
		require.Equal(t, transport.StatusOK, a.wait(copied.Cookie).Status)
		require.Equal(t, round, a.read8(1, 5*bytes), "a fenced write sent what was there before the atomic's result")
	}
}

// testInOrderData polls the last word of a long write.
func testInOrderData(t *testing.T, s *suite) {
	need(t, s.caps.InOrderData, "order within one write")
	a, b := s.pair(t, litmusData)
	a.ep(1)
	words := s.upTo(litmusData)/8 - 8
	var acks atomic.Int64
	var failed atomic.Bool
	together(t, 2, func(i int) (err error) {
		defer func() {
			if err != nil {
				failed.Store(true)
			}
		}()
		for round := 1; round <= s.opt.Rounds && !failed.Load(); round++ {
			if i == 0 {
				for w := range words {
					a.mem.Word64(8 * w).Store(uint64(round))
				}
				op := a.op(transport.OpWrite, 1, 0, 0, 8*words)
				if err := a.tryPost(op); err != nil {
					return err
				}
				if _, err := a.tryWait(op.Cookie); err != nil {
					return err
				}
				for acks.Load() < int64(round) && !failed.Load() {
					runtime.Gosched()
				}
				continue
			}
			if err := pollFlag(b, 8*(words-1), uint64(round), &failed); err != nil {
				return err
			}
			for w := range words {
				if v := b.mem.Word64(8 * w).Load(); v != uint64(round) && !failed.Load() {
					return fmt.Errorf("round %d: word %d of %d was still %d when the last was there", round, w, words, v)
				}
			}
			acks.Store(int64(round))
		}
		return nil
	})
}
