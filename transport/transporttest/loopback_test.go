package transporttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// openLoopback opens n ranks of a new fabric.
func openLoopback(t testing.TB, n int, c FabricConfig) (*Fabric, []transport.Domain) {
	f := NewFabric(n, c)
	ds := make([]transport.Domain, n)
	for r := range ds {
		d, err := f.Provider(r).Open(t.Context(), transport.Config{Rank: r, Size: n, Job: "test"})
		require.NoError(t, err)
		ds[r] = d
		t.Cleanup(func() { _ = d.Close() })
	}
	return f, ds
}

// pollOne waits for one completion.
func pollOne(t testing.TB, d transport.Domain) transport.Completion {
	var cq [1]transport.Completion
	for {
		n, err := d.Poll(cq[:])
		require.NoError(t, err)
		if n == 1 {
			return cq[0]
		}
		require.NoError(t, d.Wait(t.Context()))
	}
}

func TestLoopbackAllocatesNothing(t *testing.T) {
	_, ds := openLoopback(t, 2, FabricConfig{})
	ep, err := ds[0].Connect(t.Context(), 1, ds[1].Address())
	require.NoError(t, err)
	src, dst := mem.Of(make([]uint64, 64)), mem.Of(make([]uint64, 64))
	ls, err := ds[0].Register(src, transport.AllAccess)
	require.NoError(t, err)
	rs, err := ds[1].Register(dst, transport.AllAccess)
	require.NoError(t, err)
	ops := []transport.Op{
		{Kind: transport.OpWrite, NSGE: 1, EP: ep, SGE: [4]transport.SGE{{Mem: src, LKey: ls.LKey}}, RAddr: dst.Addr(), RKey: rs.RKey},
		{Kind: transport.OpWrite, NSGE: 1, Flags: transport.FlagInline, EP: ep, SGE: [4]transport.SGE{{Mem: src.Slice(0, 8)}}, RAddr: dst.Addr(), RKey: rs.RKey},
		{Kind: transport.OpFetchAdd, NSGE: 1, Flags: transport.FlagSignaled, EP: ep, SGE: [4]transport.SGE{{Mem: src.Slice(0, 8), LKey: ls.LKey}}, RAddr: dst.Addr(), RKey: rs.RKey},
	}
	var cq [8]transport.Completion
	require.Zero(t, testing.AllocsPerRun(2000, func() {
		n, err := ds[0].Post(ops)
		if n != len(ops) || err != nil {
			t.Fatal(n, err)
		}
		for got := 0; got == 0; {
			if got, err = ds[0].Poll(cq[:]); err != nil {
				t.Fatal(err)
			}
			if got == 0 {
				_ = ds[0].Wait(t.Context())
			}
		}
	}), "L4")
	require.Equal(t, transport.StatusOK, cq[0].Status)
}

func BenchmarkLoopbackWrite8(b *testing.B) {
	_, ds := openLoopback(b, 2, FabricConfig{})
	ep, err := ds[0].Connect(b.Context(), 1, ds[1].Address())
	require.NoError(b, err)
	src, dst := mem.Of(make([]uint64, 1)), mem.Of(make([]uint64, 1))
	rs, err := ds[1].Register(dst, transport.AllAccess)
	require.NoError(b, err)
	ops := []transport.Op{{
		Kind: transport.OpWrite, NSGE: 1, Flags: transport.FlagInline | transport.FlagSignaled, EP: ep,
		SGE: [4]transport.SGE{{Mem: src}}, RAddr: dst.Addr(), RKey: rs.RKey,
	}}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = ds[0].Post(ops)
		_ = pollOne(b, ds[0])
	}
}
