package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
)

// path is one way to have an operation done: through the domain, or through the flat functions alone, with the same
// operation on the same queue pair. The difference is what the domain costs.
type path struct {
	name string
	do   func(b *testing.B, a *rank, op *transport.Op)
}

var paths = []path{
	{"domain", func(b *testing.B, a *rank, op *transport.Op) {
		ops := []transport.Op{*op}
		var cq [1]transport.Completion
		for b.Loop() {
			if n, err := a.Post(ops); n != 1 || err != nil {
				b.Fatal(n, err)
			}
			for n := 0; n == 0; {
				var err error
				if n, err = a.Poll(cq[:]); err != nil || cq[0].Status != transport.StatusOK {
					b.Fatal(err, cq[0].Status)
				}
			}
		}
	}},
	{"flat", func(b *testing.B, a *rank, op *transport.Op) {
		var send [1]ibv.Send
		var done [1]ibv.Done
		fill(&send[0], op)
		send[0].QP, send[0].Flags = a.pairOf(op.EP).qp.Handle, send[0].Flags|ibv.FlagSignaled
		for b.Loop() {
			if ibv.Post(send[:]) != 0 {
				b.Fatal(send[0].Error)
			}
			for n := 0; n == 0; {
				var err error
				if n, err = ibv.Poll(&a.nic, done[:]); err != nil || done[0].Status != ibv.StatusOK {
					b.Fatal(err, done[0].Status)
				}
			}
		}
	}},
}

// BenchmarkOperation measures one operation from its post to its completion.
func BenchmarkOperation(b *testing.B) {
	all := ranks(b, 2)
	a, to := all[0], all[1]
	large := [2]mem.Range{mem.Of(make([]uint64, 1<<17)), mem.Of(make([]uint64, 1<<17))}
	here, err := a.Register(large[0], transport.AllAccess)
	require.NoError(b, err)
	there, err := to.Register(large[1], transport.AllAccess)
	require.NoError(b, err)
	ep := a.dial(to)
	for _, c := range []struct {
		name  string
		kind  transport.Kind
		flags uint8
		bytes int
	}{
		{"put-8", transport.OpWrite, transport.FlagInline, 8},
		{"get-8", transport.OpRead, 0, 8},
		{"fetch-add", transport.OpFetchAdd, 0, 8},
		{"put-64KiB", transport.OpWrite, 0, 64 << 10},
		{"put-1MiB", transport.OpWrite, 0, 1 << 20},
	} {
		for _, p := range paths {
			b.Run(c.name+"/"+p.name, func(b *testing.B) {
				op := transport.Op{
					Kind: c.kind, Flags: c.flags | transport.FlagSignaled, EP: ep, NSGE: 1,
					RAddr: large[1].Addr(), RKey: there.RKey,
					SGE: [4]transport.SGE{{Mem: large[0].Slice(0, c.bytes), LKey: here.LKey}},
				}
				b.SetBytes(int64(c.bytes))
				b.ReportAllocs()
				p.do(b, a, &op)
			})
		}
	}
}
