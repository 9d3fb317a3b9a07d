package softnic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// TestRecvs: buffers come out in their order, round the end of the ring too, and places count until receives are polled.
func TestRecvs(t *testing.T) {
	bufs := make([]transport.Recv, 5)
	for i := range bufs {
		bufs[i].Cookie = uint64(i + 1)
	}
	q := NewRecvs(3)
	_, ok := q.Take()
	require.False(t, ok)
	require.Equal(t, 3, q.Add(bufs))
	for want := range uint64(2) {
		r, ok := q.Take()
		require.True(t, ok)
		require.Equal(t, want+1, r.Cookie)
	}
	require.Zero(t, q.Add(bufs[3:]), "taken, and not polled")
	require.Equal(t, 1, q.Len())
	q.GiveBack(bufs[1])
	require.Equal(t, 2, q.Len())
	q.Polled(1)
	require.Equal(t, 1, q.Add(bufs[3:]))
	var ids []uint64
	for r, ok := q.Take(); ok; r, ok = q.Take() {
		ids = append(ids, r.Cookie)
	}
	require.Equal(t, []uint64{2, 3, 4}, ids)
}

// TestCheck: what an operation must be, by kind and by what the NIC can do.
func TestCheck(t *testing.T) {
	all := transport.Caps{Atomics64: true, Sends: true, WriteImm: true, MaxSGE: 2, MaxMessage: 64, MaxInline: 8}
	op := func(k transport.Kind, bytes int) transport.Op {
		o := transport.Op{Kind: k, NSGE: 1}
		o.EP.Incarnation = 1
		o.SGE[0].Mem = mem.Range{Bytes: bytes}
		return o
	}
	for _, k := range []transport.Kind{transport.OpWrite, transport.OpWriteImm, transport.OpSend, transport.OpRead, transport.OpFetchAdd, transport.OpCompareSwap} {
		o := op(k, 8)
		require.NoError(t, Check(&o, 1, &all))
	}
	none := all
	none.Atomics64, none.Sends, none.WriteImm = false, false, false
	for _, k := range []transport.Kind{transport.OpWriteImm, transport.OpSend, transport.OpFetchAdd, transport.OpCompareSwap} {
		o := op(k, 8)
		require.ErrorIs(t, Check(&o, 1, &none), transport.ErrUnsupported)
	}
	for want, change := range map[string]func(o *transport.Op){
		"no such kind of operation":             func(o *transport.Op) { o.Kind = 0 },
		"only writes and sends may be inline":   func(o *transport.Op) { o.Kind, o.Flags = transport.OpRead, transport.FlagInline },
		"a multiple of 8":                       func(o *transport.Op) { o.Kind, o.RAddr = transport.OpFetchAdd, 4 },
		"one local piece of 8 bytes":            func(o *transport.Op) { o.Kind, o.SGE[0].Mem.Bytes = transport.OpCompareSwap, 4 },
		"no endpoint 1 of incarnation 1":        func(o *transport.Op) { o.EP.Index = 1 },
		"no endpoint 0 of incarnation 0":        func(o *transport.Op) { o.EP.Incarnation = 0 },
		"3 pieces, at most 2":                   func(o *transport.Op) { o.NSGE = 3 },
		"65 bytes in one operation, at most 64": func(o *transport.Op) { o.SGE[0].Mem.Bytes = 65 },
		"9 bytes inline, at most 8":             func(o *transport.Op) { o.Flags, o.SGE[0].Mem.Bytes = transport.FlagInline, 9 },
	} {
		o := op(transport.OpWrite, 8)
		change(&o)
		require.ErrorContains(t, Check(&o, 1, &all), want)
	}
}
