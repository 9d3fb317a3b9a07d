package window

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/racecheck"
	pgsync "gopgas/sync"
	"gopgas/transport"
)

// Accumulate combines src into target's elements from disp on, each element atomically, the whole not. It is
// flushed like a Put, and returns when src may be reused. What one goroutine does to one element by accumulates, stores and atomics, one after the
// other, takes place in that order, as in MPI, also where a connection breaks meanwhile and is made again; behind a Put of the element it takes an Order.
func Accumulate[T pgsync.Number](w *Window[T], target, disp int, src []T, op Op) error {
	if w.c.cpu && uint(target) < uint(len(w.parts)) && op < atom.CompareSwap && unsafe.Sizeof(*new(T)) >= 4 {
		if p, n := w.parts[target].direct(); uint(disp) < n && uint(len(src)) <= n-uint(disp) && accumulates[T](op) {
			accumulate(p.s[disp:disp+len(src)], src, op)
			return nil
		}
	}
	return w.c.accumulate(target, disp, mem.Of(src), len(src), op)
}

// accumulates reports whether op is defined for T.
func accumulates[T pgsync.Number](op Op) bool {
	return T(1)/T(2) == 0 || op != atom.And && op != atom.Or && op != atom.Xor
}

// accumulate combines src into mapped elements of 4 or 8 bytes. There is a loop for each operation, so that the
// choice is made once.
func accumulate[T pgsync.Number](dst, src []T, op Op) {
	switch op {
	case atom.Sum:
		if T(1)/T(2) != 0 {
			update(dst, src, func(a, b T) T { return a + b })
			return
		}
		for i, v := range src {
			addWord(&dst[i], v)
		}
	case atom.Xor:
		for i, v := range src {
			xorWord(&dst[i], v)
		}
	case atom.And:
		for i, v := range src {
			andWord(&dst[i], v)
		}
	case atom.Or:
		for i, v := range src {
			orWord(&dst[i], v)
		}
	case atom.Replace:
		for i, v := range src {
			store(&dst[i], v)
		}
	case atom.Min:
		update(dst, src, func(a, b T) T { return min(a, b) })
	case atom.Max:
		update(dst, src, func(a, b T) T { return max(a, b) })
	case atom.Prod:
		update(dst, src, func(a, b T) T { return a * b })
	}
}

// update replaces each element by f of it and its operand.
func update[T pgsync.Number](dst, src []T, f func(a, b T) T) {
	for i, v := range src {
		for {
			old := load(&dst[i])
			if casWord(&dst[i], old, f(old, v)) {
				break
			}
		}
	}
}

func casWord[T pgsync.Number](p *T, old, v T) bool {
	if unsafe.Sizeof(v) == 8 {
		return atomic.CompareAndSwapUint64(p64(p), *p64(&old), *p64(&v))
	}
	return atomic.CompareAndSwapUint32(p32(p), *p32(&old), *p32(&v))
}

func addWord[T pgsync.Number](p *T, v T) {
	if unsafe.Sizeof(v) == 8 {
		atomic.AddUint64(p64(p), *p64(&v))
		return
	}
	atomic.AddUint32(p32(p), *p32(&v))
}

// addOld adds v to an element of 4 or 8 bytes and returns what it was.
func addOld[T pgsync.Number](p *T, v T) T {
	if T(1)/T(2) != 0 {
		for {
			old := load(p)
			if casWord(p, old, old+v) {
				return old
			}
		}
	}
	if unsafe.Sizeof(v) == 8 {
		u := addOld64(p64(p), *p64(&v))
		return *(*T)(unsafe.Pointer(&u))
	}
	u := addOld32(p32(p), *p32(&v))
	return *(*T)(unsafe.Pointer(&u))
}

func andWord[T pgsync.Number](p *T, v T) {
	if unsafe.Sizeof(v) == 8 {
		atomic.AndUint64(p64(p), *p64(&v))
		return
	}
	atomic.AndUint32(p32(p), *p32(&v))
}

func orWord[T pgsync.Number](p *T, v T) {
	if unsafe.Sizeof(v) == 8 {
		atomic.OrUint64(p64(p), *p64(&v))
		return
	}
	atomic.OrUint32(p32(p), *p32(&v))
}

func xorWord[T pgsync.Number](p *T, v T) {
	if unsafe.Sizeof(v) == 8 {
		xorOld64(p64(p), *p64(&v))
		return
	}
	xorOld32(p32(p), *p32(&v))
}

// accumulate asks the engine.
func (w *core) accumulate(target, disp int, src mem.Range, n int, op Op) error {
	if err := w.check("accumulate", target, disp, n); err != nil {
		return err
	}
	if err := w.accumulable(op); err != nil || n == 0 {
		return transport.NewOpError("accumulate", w.remotes[target].Rank, err)
	}
	if err := w.gone("accumulate", target); err != nil {
		return err
	}
	src = w.near(src)
	if w.race != nil {
		return w.checkedUpdate("accumulate", op, target, disp, src, mem.Range{}, racecheck.ByFlush)
	}
	return w.e.Accumulate(op, w.elem, &w.remotes[target], disp*w.elem.Bytes, src)
}

// GetAccumulate combines src into target's elements from disp on, each element atomically, the whole not, and stores
// what they were in old, which is as long as src and may be src itself. It returns when old is there.
func GetAccumulate[T pgsync.Number](w *Window[T], target, disp int, src, old []T, op Op) error {
	return w.c.getAccumulate(target, disp, len(src), len(old), mem.Of(src), mem.Of(old), op)
}

func (w *core) getAccumulate(target, disp, n, room int, src, old mem.Range, op Op) error {
	const name = "get-accumulate"
	if err := w.check(name, target, disp, n); err != nil {
		return err
	}
	r := &w.remotes[target]
	if room != n {
		return transport.NewOpError(name, r.Rank, fmt.Errorf("%w: %d elements, and room for %d old ones", ErrRange, n, room))
	}
	if err := w.accumulable(op); err != nil || n == 0 {
		return transport.NewOpError(name, r.Rank, err)
	}
	if err := w.gone(name, target); err != nil {
		return err
	}
	if w.race != nil {
		return w.checkedUpdate(name, op, target, disp, w.near(src), w.near(old), racecheck.AtReturn)
	}
	return w.e.GetAccumulate(op, w.elem, r, disp*w.elem.Bytes, w.near(src), w.near(old))
}

// accumulable returns an error unless op is one of Accumulate's for the element type.
func (w *core) accumulable(op Op) error {
	if op > atom.Replace {
		return fmt.Errorf("%w: operation %d", atom.ErrUndefined, op)
	}
	return w.elem.Check(op)
}
