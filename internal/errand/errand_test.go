package errand

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
)

const key = 5

// memory is 64 bytes on the heap, whose address does not change, and the middle 32 of them, which are exposed: what lies around
// these is nobody's business.
//
//go:noinline
func memory(words ...uint64) ([]uint64, mem.Range) {
	all := make([]uint64, 8)
	copy(all, words)
	return all, mem.Of(all).Slice(16, 32)
}

// TestErrands: what is asked is done, and the answer says what was there.
func TestErrands(t *testing.T) {
	u32, u64 := atom.ElemOf[uint32](), atom.Word64()
	for _, c := range []struct {
		name   string
		kind   Kind
		ask    func(addr uint64) (Args, []byte)
		answer []byte
		after  []uint64
	}{
		{"fetch-add", ToAtomic, func(addr uint64) (Args, []byte) {
			a, what := ForAtomic(atom.Sum, u64, key, addr, 7, 0)
			return a, what[:]
		}, []byte{1, 0, 0, 0, 0, 0, 0, 0}, []uint64{0, 0, 8, 2, 3, 4}},
		{"compare-swap, other", ToAtomic, func(addr uint64) (Args, []byte) {
			a, what := ForAtomic(atom.CompareSwap, u64, key, addr+8, 9, 1)
			return a, what[:]
		}, []byte{2, 0, 0, 0, 0, 0, 0, 0}, []uint64{0, 0, 1, 2, 3, 4}},
		{"narrow", ToAtomic, func(addr uint64) (Args, []byte) {
			a, what := ForAtomic(atom.Max, u32, key, addr+4, 6, 0)
			return a, what[:]
		}, make([]byte, 8), []uint64{0, 0, 1 | 6<<32, 2, 3, 4}},
		{"accumulate", ToAccumulate, func(addr uint64) (Args, []byte) {
			return ForElements(atom.Sum, u64, key, addr+8), mem.Of([]uint64{10, 20}).Data()
		}, nil, []uint64{0, 0, 1, 12, 23, 4}},
		{"get-accumulate", ToGetAccumulate, func(addr uint64) (Args, []byte) {
			return ForElements(atom.Sum, u64, key, addr+16), mem.Of([]uint64{10, 20}).Data()
		}, mem.Of([]uint64{3, 4}).Data(), []uint64{0, 0, 1, 2, 13, 24}},
		{"store", ToStore, func(addr uint64) (Args, []byte) {
			return ForBytes(key, addr+2, 3), []byte{1, 2, 3}
		}, nil, []uint64{0, 0, 1 | 1<<16 | 2<<24 | 3<<32, 2, 3, 4}},
		{"store a word", ToStore, func(addr uint64) (Args, []byte) {
			return ForBytes(key, addr+24, 8), mem.Of([]uint64{77}).Data()
		}, nil, []uint64{0, 0, 1, 2, 3, 77}},
		{"load", ToLoad, func(addr uint64) (Args, []byte) {
			return ForBytes(key, addr+8, 9), nil
		}, []byte{2, 0, 0, 0, 0, 0, 0, 0, 3}, []uint64{0, 0, 1, 2, 3, 4}},
		{"list", ToList, func(addr uint64) (Args, []byte) {
			b := mem.Of(make([]byte, ListBytes(u64, 3)))
			for j, x := range []uint64{5, 6, 7} {
				SetEntry(b, u64, 3, j, addr+uint64(8*(j%2)), x)
			}
			return ForList(atom.Sum, u64, key, true), b.Data()
		}, mem.Of([]uint64{1, 2, 6}).Data(), []uint64{0, 0, 13, 8, 3, 4}},
		{"list without answer", ToList, func(addr uint64) (Args, []byte) {
			b := mem.Of(make([]byte, ListBytes(u32, 1)))
			SetEntry(b, u32, 1, 0, addr+28, 9)
			return ForList(atom.Sum, u32, key, false), b.Data()
		}, nil, []uint64{0, 0, 1, 2, 3, 4 | 9<<32}},
	} {
		t.Run(c.name, func(t *testing.T) {
			words, whole := memory(0, 0, 1, 2, 3, 4)
			args, payload := c.ask(whole.Addr())
			require.EqualValues(t, key, args[0])
			out := make([]byte, 32)
			n, verdict := Perform(c.kind, args, payload, whole, out)
			require.Equal(t, OK, verdict)
			require.Equal(t, len(c.answer), n)
			require.Equal(t, c.answer, append([]byte(nil), out[:n]...))
			require.Equal(t, append(c.after, 0, 0), words)
		})
	}
}

// TestRefusals (Q2): what may not be done changes nothing.
func TestRefusals(t *testing.T) {
	u64 := atom.Word64()
	eight := make([]byte, 8)
	for _, c := range []struct {
		name    string
		kind    Kind
		off     uint64 // added to the address of the memory
		args    func(addr uint64) Args
		payload []byte
		out     int
		want    Verdict
	}{
		{"store before", ToStore, ^uint64(0), func(a uint64) Args { return ForBytes(key, a, 8) }, eight, 8, Refused},
		{"store behind", ToStore, 25, func(a uint64) Args { return ForBytes(key, a, 8) }, eight, 8, Refused},
		{"load behind", ToLoad, 32, func(a uint64) Args { return ForBytes(key, a, 1) }, nil, 8, Refused},
		{"load far too much", ToLoad, 0, func(a uint64) Args { return ForBytes(key, a, -1) }, nil, 8, Malformed},
		{"load more than the answer holds", ToLoad, 0, func(a uint64) Args { return ForBytes(key, a, 16) }, nil, 8, Malformed},
		{"atomic across the end", ToAtomic, 28, func(a uint64) Args { return Args{key, a, 1, 0} }, []byte{byte(atom.Sum), byte(u64.Kind), 8}, 8, Refused},
		{"atomic at an odd address", ToAtomic, 4, func(a uint64) Args { return Args{key, a, 1, 0} }, []byte{byte(atom.Sum), byte(u64.Kind), 8}, 8, Refused},
		{"atomic of no size", ToAtomic, 0, func(a uint64) Args { return Args{key, a, 1, 0} }, []byte{byte(atom.Sum), byte(u64.Kind), 0}, 8, Refused},
		{"no such operation", ToAtomic, 0, func(a uint64) Args { return Args{key, a, 1, 0} }, []byte{200, byte(u64.Kind), 8}, 8, Refused},
		{"atomic without a payload", ToAtomic, 0, func(a uint64) Args { return Args{key, a, 1, 0} }, nil, 8, Malformed},
		{"atomic without room for the answer", ToAtomic, 0, func(a uint64) Args { return Args{key, a, 1, 0} }, []byte{byte(atom.Sum), byte(u64.Kind), 8}, 7, Malformed},
		{"accumulate behind", ToAccumulate, 32, func(a uint64) Args { return ForElements(atom.Sum, u64, key, a) }, eight, 8, Refused},
		{"accumulate half an element", ToAccumulate, 0, func(a uint64) Args { return ForElements(atom.Sum, u64, key, a) }, eight[:4], 8, Refused},
		{"accumulate compare-swaps", ToAccumulate, 0, func(a uint64) Args { return ForElements(atom.CompareSwap, u64, key, a) }, eight, 8, Refused},
		{"get-accumulate more than the answer holds", ToGetAccumulate, 0, func(a uint64) Args { return ForElements(atom.Sum, u64, key, a) }, make([]byte, 16), 8, Malformed},
		{"list of half an entry", ToList, 0, func(uint64) Args { return ForList(atom.Sum, u64, key, false) }, make([]byte, 15), 8, Malformed},
		{"list of an address outside", ToList, 0, func(uint64) Args { return ForList(atom.Sum, u64, key, false) }, make([]byte, 16), 8, Refused},
		{"no such kind", Kinds, 0, func(a uint64) Args { return ForBytes(key, a, 8) }, eight, 8, Malformed},
		{"kind 0", 0, 0, func(a uint64) Args { return ForBytes(key, a, 8) }, eight, 8, Malformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			words, whole := memory(0, 0, 1, 2, 3, 4)
			out := make([]byte, c.out)
			n, verdict := Perform(c.kind, c.args(whole.Addr()+c.off), c.payload, whole, out)
			require.Equal(t, c.want, verdict)
			require.Zero(t, n)
			require.Equal(t, []uint64{0, 0, 1, 2, 3, 4, 0, 0}, words)
			require.Equal(t, make([]byte, c.out), out)
		})
	}
}

// TestListsAreWhole (Q2): one entry that may not be done, and none is.
func TestListsAreWhole(t *testing.T) {
	words, whole := memory()
	u64 := atom.Word64()
	b := mem.Of(make([]byte, ListBytes(u64, 2)))
	SetEntry(b, u64, 2, 0, whole.Addr(), 1)
	SetEntry(b, u64, 2, 1, whole.Addr()+32, 1)
	_, verdict := Perform(ToList, ForList(atom.Sum, u64, key, false), b.Data(), whole, nil)
	require.Equal(t, Refused, verdict)
	require.Equal(t, make([]uint64, 8), words)
}

// TestForgetWaits (Q4): memory that is held is not forgotten, and what is forgotten is not held.
func TestForgetWaits(t *testing.T) {
	var m Memories
	_, local := memory()
	_, ok := m.Hold(key)
	m.Release()
	require.False(t, ok)
	m.Know(key, local)
	whole, ok := m.Hold(key)
	require.True(t, ok)
	require.Equal(t, local, whole)

	var released atomic.Bool
	forgotten := make(chan bool)
	go func() {
		m.Forget(key)
		forgotten <- released.Load()
	}()
	for m.mu.TryRLock() { // until who forgets waits
		m.mu.RUnlock()
		time.Sleep(time.Microsecond)
	}
	released.Store(true)
	m.Release()
	require.True(t, <-forgotten, "it did not wait")
	_, ok = m.Hold(key)
	m.Release()
	require.False(t, ok)
}

// FuzzPerform: no message makes the handler touch what it may not, or write more than it says (Q1), and what is not done
// changes nothing (Q2).
func FuzzPerform(f *testing.F) {
	u64 := atom.Word64()
	f.Add(uint8(ToAtomic), uint64(16), uint64(3), []byte{byte(atom.Sum), byte(u64.Kind), 8})
	f.Add(uint8(ToAccumulate), uint64(16), pack(atom.Sum, u64), make([]byte, 16))
	f.Add(uint8(ToGetAccumulate), uint64(24), pack(atom.Max, atom.ElemOf[uint16]()), make([]byte, 16))
	f.Add(uint8(ToStore), uint64(17), uint64(0), make([]byte, 31))
	f.Add(uint8(ToLoad), uint64(40), uint64(8), []byte(nil))
	f.Add(uint8(ToList), uint64(16), pack(atom.Sum, u64)|fetches, []byte("12345678abcdefgh"))
	f.Add(uint8(ToList), uint64(20), pack(atom.Max, atom.ElemOf[uint16]()), make([]byte, 20))
	f.Fuzz(func(t *testing.T, kind uint8, off, what uint64, payload []byte) {
		const quiet = 0x5a
		words, whole := memory()
		out := make([]byte, 256)
		for i := range out {
			out[i] = quiet
		}
		addr := mem.Of(words).Addr() + off
		payload = append([]byte(nil), payload...)
		if kind == uint8(ToList) && len(payload) >= 8 { // an address that may be inside
			binary.LittleEndian.PutUint64(payload, addr)
		}
		n, verdict := Perform(Kind(kind), Args{key, addr, what}, payload, whole, out)
		require.LessOrEqual(t, n, len(out))
		if verdict != OK {
			require.Zero(t, n)
			require.Equal(t, make([]uint64, 8), words)
		}
		require.Equal(t, [4]uint64{}, [4]uint64{words[0], words[1], words[6], words[7]})
		for _, b := range out[n:] {
			require.EqualValues(t, quiet, b)
		}
	})
}
