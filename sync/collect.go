package pgsync

import (
	"context"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/transport"
)

// Op is how elements are combined, by reductions and by window.Accumulate.
type Op = proto.Atom

// The operations. And, Or, Xor are for integers only; Replace is for Accumulate only.
const (
	Sum     = proto.Sum
	Prod    = proto.Prod
	Min     = proto.Min
	Max     = proto.Max
	And     = proto.And
	Or      = proto.Or
	Xor     = proto.Xor
	Replace = proto.Replace
)

// Number is what can be reduced.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

// rounds calls f for each piece of n elements that fits an outbox; at least once, so that empty collectives
// still synchronise.
func rounds(n, elemBytes int, f func(lo, hi int) error) error {
	step := payloadBytes / elemBytes
	for lo := 0; ; lo += step {
		if err := f(lo, min(lo+step, n)); err != nil {
			return err
		}
		if lo+step >= n {
			return nil
		}
	}
}

// checkData verifies what every data collective needs of its arguments, before anything moves.
func checkData[T any](t *Team, op string, root int) error {
	if err := mem.CheckElem[T](); err != nil {
		return transport.NewOpError(op, -1, err)
	}
	if mem.SizeOf[T]() > payloadBytes {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: elements of %d bytes; the largest is %d", ErrMismatch, mem.SizeOf[T](), payloadBytes))
	}
	if root < 0 || root >= t.Size() {
		return transport.NewOpError(op, root, fmt.Errorf("%w: root %d of a team of %d", ErrMember, root, t.Size()))
	}
	return nil
}

// Broadcast copies root's buf to every member's buf, which has the same length everywhere. Collective.
func Broadcast[T any](ctx context.Context, t *Team, buf []T, root int) error {
	const op = "broadcast"
	if err := checkData[T](t, op, root); err != nil {
		return err
	}
	if err := t.begin(ctx, op); err != nil {
		return err
	}
	return t.end(rounds(len(buf), mem.SizeOf[T](), func(lo, hi int) error {
		part := mem.Of(buf[lo:hi])
		if t.me == root {
			t.write(part)
		}
		r, err := t.turn(ctx, callOf(callBroadcast, mem.SizeOf[T](), len(buf)), root)
		if err != nil || t.me == root {
			return err
		}
		return t.read(r, root, part)
	}))
}

// AllGather concatenates every member's src, in the order of ranks, into every member's dst. All src have the
// same length, and dst has Size times that; otherwise an error before anything moves. Collective.
func AllGather[T any](ctx context.Context, t *Team, dst, src []T) error {
	const op = "allgather"
	if err := checkData[T](t, op, 0); err != nil {
		return err
	}
	if len(dst) != len(src)*t.Size() {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: dst has %d elements, needs %d (%d members of %d)",
			ErrMismatch, len(dst), len(src)*t.Size(), t.Size(), len(src)))
	}
	if err := t.begin(ctx, op); err != nil {
		return err
	}
	if t.gathers(len(src) * mem.SizeOf[T]()) {
		return t.end(gatherAll(ctx, t, callOf(callAllGather, mem.SizeOf[T](), len(src)), dst, src))
	}
	return t.end(rounds(len(src), mem.SizeOf[T](), func(lo, hi int) error {
		t.write(mem.Of(src[lo:hi]))
		r, err := t.turn(ctx, callOf(callAllGather, mem.SizeOf[T](), len(src)), 0)
		for m := 0; m < t.Size() && err == nil; m++ {
			err = t.read(r, m, mem.Of(dst[m*len(src)+lo:m*len(src)+hi]))
		}
		return err
	}))
}

// Reduce combines the members' src element by element into root's dst, in the order of ranks; dst is not looked
// at elsewhere. dst and src may be the same slice. Collective.
func Reduce[T Number](ctx context.Context, t *Team, dst, src []T, op Op, root int) error {
	if err := checkData[T](t, "reduce", root); err != nil {
		return err
	}
	return reduce(ctx, t, "reduce", dst, src, op, root)
}

// AllReduce is Reduce with the result, bit by bit the same, on every member. Collective.
func AllReduce[T Number](ctx context.Context, t *Team, dst, src []T, op Op) error {
	if err := checkData[T](t, "allreduce", 0); err != nil {
		return err
	}
	return reduce(ctx, t, "allreduce", dst, src, op, everyone)
}

// reduceGathered is AllReduce of a few elements: every member gets all members' and combines them.
func reduceGathered[T Number](ctx context.Context, t *Team, dst, src []T, op Op) error {
	n := len(src)
	all := make([]T, n*t.Size())
	if err := gatherAll(ctx, t, callOf(callReduce+int(op), mem.SizeOf[T](), n), all, src); err != nil {
		return err
	}
	copy(dst, all[:n])
	for m := 1; m < t.Size(); m++ {
		fold(op, dst, all[m*n:(m+1)*n])
	}
	return nil
}

// everyone is the root of a reduction whose result goes to all.
const everyone = -1

func reduce[T Number](ctx context.Context, t *Team, name string, dst, src []T, op Op, root int) error {
	want := root == everyone || root == t.me
	if want && len(dst) != len(src) {
		return transport.NewOpError(name, -1, fmt.Errorf("%w: dst has %d elements and src %d", ErrMismatch, len(dst), len(src)))
	}
	if err := proto.ElemOf[T]().Check(op); err != nil || op >= Replace {
		if err == nil {
			err = fmt.Errorf("%w: %s is not a reduction", proto.ErrAtomic, op)
		}
		return transport.NewOpError(name, -1, err)
	}
	if err := t.begin(ctx, name); err != nil {
		return err
	}
	if root == everyone && t.gathers(len(src)*mem.SizeOf[T]()) {
		return t.end(reduceGathered(ctx, t, dst, src, op))
	}
	var other []T
	return t.end(rounds(len(src), mem.SizeOf[T](), func(lo, hi int) error {
		t.write(mem.Of(src[lo:hi]))
		r, err := t.turn(ctx, callOf(callReduce+int(op), mem.SizeOf[T](), len(src)), root)
		if err != nil || !want {
			return err
		}
		if err := t.read(r, 0, mem.Of(dst[lo:hi])); err != nil {
			return err
		}
		for m := 1; m < t.Size(); m++ {
			if t.peers[m].Mapped.Bytes == 0 && other == nil {
				other = make([]T, hi-lo)
			}
			from, err := t.see(r, m, mem.Of(other[:min(hi-lo, len(other))]), (hi-lo)*mem.SizeOf[T]())
			if err != nil {
				return err
			}
			fold(op, dst[lo:hi], mem.Slice[T](from))
		}
		return nil
	}))
}

// fold combines b into a, element by element.
func fold[T Number](op Op, a, b []T) {
	switch op {
	case Sum:
		for i := range a {
			a[i] += b[i]
		}
	case Prod:
		for i := range a {
			a[i] *= b[i]
		}
	case Min:
		for i := range a {
			a[i] = min(a[i], b[i])
		}
	case Max:
		for i := range a {
			a[i] = max(a[i], b[i])
		}
	default:
		e := proto.ElemOf[T]()
		for i := range a {
			x, y := mem.Of(a[i:i+1]), mem.Of(b[i:i+1])
			x.SetBits(proto.Combine(op, e.Kind, x.Bits(), y.Bits(), 0))
		}
	}
}
