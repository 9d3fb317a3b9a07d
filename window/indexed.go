package window

import (
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/transport"
)

// blocks verifies an indexed transfer before anything moves, and returns the number of elements for each displacement.
func (w *core) blocks(op string, target int, disps []int, near int) (block int, err error) {
	if err := w.checkTarget(op, target); err != nil {
		return 0, err
	}
	if len(disps) == 0 && near == 0 {
		return 0, nil
	}
	if len(disps) == 0 || near%len(disps) != 0 {
		return 0, transport.NewOpError(op, w.remotes[target].Rank,
			fmt.Errorf("%w: %d elements for %d displacements: needed the same number for each", ErrRange, near, len(disps)))
	}
	block = near / len(disps)
	for _, d := range disps {
		if err := w.check(op, target, d, block); err != nil {
			return 0, err
		}
	}
	return block, nil
}

// PutIndexed copies src to target's part: an equal share of it to each of disps, in order; with as many displacements
// as elements, that is one each. It completes like a Put; through a NIC the pieces go out in chains of many at once.
// (MPI: an indexed-block type; ARMCI: PutV.)
func (w *Window[T]) PutIndexed(target int, disps []int, src []T) error {
	const op = "put-indexed"
	block, err := w.c.blocks(op, target, disps, len(src))
	if err != nil || block == 0 {
		return err
	}
	if p := mapped(w, target); p != nil {
		for i, d := range disps {
			switch {
			case block == 1:
				p[d] = src[i]
			case long[T](block):
				copyLong(p[d:d+block], src[i*block:])
			default:
				copy(p[d:d+block], src[i*block:])
			}
		}
		return nil
	}
	return w.c.moveShares(true, op, target, disps, block, mem.Of(src))
}

// GetIndexed copies pieces of target's part, an equal share of dst from each of disps, to dst in order, and returns
// when they are there.
func (w *Window[T]) GetIndexed(target int, disps []int, dst []T) error {
	const op = "get-indexed"
	block, err := w.c.blocks(op, target, disps, len(dst))
	if err != nil || block == 0 {
		return err
	}
	if p := mapped(w, target); p != nil {
		for i, d := range disps {
			switch {
			case block == 1:
				dst[i] = p[d]
			case long[T](block):
				copyLong(dst[i*block:(i+1)*block], p[d:])
			default:
				copy(dst[i*block:(i+1)*block], p[d:])
			}
		}
		return nil
	}
	return w.c.moveShares(false, op, target, disps, block, mem.Of(dst))
}

// moveShares asks the engine for the pieces of an indexed transfer.
func (w *core) moveShares(put bool, op string, target int, disps []int, block int, near mem.Range) error {
	if err := w.gone(op, target); err != nil {
		return err
	}
	r, size := &w.remotes[target], w.elem.Bytes
	return w.moveRuns(put, op, len(disps), func(i int) proto.Run {
		return proto.Run{To: r, Far: disps[i] * size, Near: i * block * size, Bytes: block * size}
	}, near)
}

// Scatter puts element i of src to the target and displacement that at(i) returns, for as many targets as there are.
// It completes like a Put. at is called more than once for each i and always answers the same. It makes no call
// that waits, as Flush does: that could be for pieces of this very call, which set out when more have been asked for.
func (w *Window[T]) Scatter(src []T, at func(i int) (target, disp int)) error {
	const op = "scatter"
	direct, err := w.c.places(op, len(src), at)
	if err != nil {
		return err
	}
	if direct {
		for i, v := range src {
			target, disp := at(i)
			w.parts[target].s[disp] = v
		}
		return nil
	}
	return w.c.moveSpread(true, op, len(src), at, mem.Of(src))
}

// Gather gets element i of dst from the target and displacement that at(i) returns, for as many targets as there are,
// and returns when all are there. Otherwise as Scatter.
func (w *Window[T]) Gather(dst []T, at func(i int) (target, disp int)) error {
	const op = "gather"
	direct, err := w.c.places(op, len(dst), at)
	if err != nil {
		return err
	}
	if direct {
		for i := range dst {
			target, disp := at(i)
			dst[i] = w.parts[target].s[disp]
		}
		return nil
	}
	return w.c.moveSpread(false, op, len(dst), at, mem.Of(dst))
}

// places verifies all places before anything moves, and reports whether all parts are used directly. Else nobody that they are with is gone.
func (w *core) places(op string, n int, at func(i int) (target, disp int)) (direct bool, err error) {
	if n == 0 {
		return true, w.usable(op)
	}
	for i := range n {
		target, disp := at(i)
		if err := w.check(op, target, disp, 1); err != nil {
			return false, err
		}
	}
	if w.direct.Load() != 0 {
		return true, nil
	}
	return false, w.goneAt(op, n, at)
}

// goneAt is gone for all places, which have been checked.
func (w *core) goneAt(op string, n int, at func(i int) (target, disp int)) error {
	if !w.e.Peers.AnyGone() {
		return nil
	}
	for i := range n {
		target, _ := at(i)
		if err := w.gone(op, target); err != nil {
			return err
		}
	}
	return nil
}

// moveSpread asks the engine for the pieces of a scatter or gather.
func (w *core) moveSpread(put bool, op string, n int, at func(i int) (target, disp int), near mem.Range) error {
	size := w.elem.Bytes
	return w.moveRuns(put, op, n, func(i int) proto.Run {
		target, disp := at(i)
		return proto.Run{To: &w.remotes[target], Far: disp * size, Near: i * size, Bytes: size}
	}, near)
}
