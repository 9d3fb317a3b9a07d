package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
	"gopgas/transport/verbs/internal/side"
)

// Flat does single operations between two ranks of this process by the flat functions alone, for comparison.
type Flat struct {
	a    *rank
	send [1]ibv.Send
	done [1]ibv.Done
	ops  [1]transport.Op
	cq   [1]transport.Completion
	here transport.Region
	to   transport.Region
	mem  [2]mem.Range
	ep   transport.EP
}

// NewFlat connects two domains and registers bytes at both.
func NewFlat(t testing.TB, bytes int) *Flat {
	t.Helper()
	all := ranks(t, 2)
	f := &Flat{a: all[0]}
	for i, region := range []*transport.Region{&f.here, &f.to} {
		f.mem[i] = mem.Of(make([]uint64, bytes/8))
		var err error
		*region, err = all[i].Register(f.mem[i], transport.AllAccess)
		require.NoError(t, err)
	}
	f.ep = f.a.dial(all[1])
	return f
}

// op is one operation of so many bytes.
func (f *Flat) op(kind transport.Kind, bytes int) transport.Op {
	op := transport.Op{Kind: kind, NSGE: 1, EP: f.ep, RAddr: f.mem[1].Addr(), RKey: f.to.RKey, Arg0: 1}
	if kind == transport.OpWrite && bytes <= f.a.caps.MaxInline {
		op.Flags = transport.FlagInline
	}
	op.SGE[0] = transport.SGE{Mem: f.mem[0].Slice(0, bytes), LKey: f.here.LKey}
	return op
}

// Do has the NIC do one operation of so many bytes, and polls until it is done.
func (f *Flat) Do(kind transport.Kind, bytes int) error {
	op := f.op(kind, bytes)
	fill(&f.send[0], &op)
	f.send[0].QP = f.a.pairOf(f.ep).qp.Handle
	f.send[0].Flags |= ibv.FlagSignaled
	if ibv.Post(f.send[:]) != 0 {
		return errEndpoint
	}
	for {
		n, err := ibv.Poll(&f.a.nic, f.done[:])
		switch {
		case err != nil:
			return err
		case n == 1 && f.done[0].Status != ibv.StatusOK:
			return side.ErrFrame
		case n == 1:
			return nil
		}
	}
}

// Through does the same by the domain's Post and Poll: what the transport adds to the flat functions, and the engine and the window do not.
func (f *Flat) Through(kind transport.Kind, bytes int) error {
	f.ops[0] = f.op(kind, bytes)
	f.ops[0].Flags |= transport.FlagSignaled
	if k, err := f.a.Post(f.ops[:]); k != 1 {
		return err
	}
	for {
		n, err := f.a.Poll(f.cq[:])
		switch {
		case err != nil:
			return err
		case n == 1 && f.cq[0].Status != transport.StatusOK:
			return side.ErrFrame
		case n == 1:
			return nil
		}
	}
}

// enter appends a record and returns its number.
func (r *ring) enter(rec record) uint32 {
	place, i := r.next()
	*place = rec
	r.add()
	return i
}
