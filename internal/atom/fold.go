package atom

import (
	"reflect"

	"gopgas/internal/mem"
)

// Fold combines b into a, element by element: a[i] = a[i] op b[i]. The slices have the same length; op is one that Elem.Check
// allows for T and that combines, so not Replace or CompareSwap.
func Fold[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64](
	op Op, a, b []T,
) {
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
		e := ElemOf[T]()
		for i := range a {
			x, y := mem.Of(a[i:i+1]), mem.Of(b[i:i+1])
			x.SetBits(Combine(op, e.Kind, x.Bits(), y.Bits(), 0))
		}
	}
}

// FoldRange is Fold of ranges of elements that e describes. Ranges of others stay as they are.
func FoldRange(op Op, e Elem, a, b mem.Range) {
	if op == Sum {
		if done := sumLong(e.Kind, a, b); done > 0 {
			a, b = a.Slice(done, a.Bytes-done), b.Slice(done, a.Bytes-done)
		}
	}
	switch e.Kind {
	case reflect.Int:
		Fold(op, mem.Slice[int](a), mem.Slice[int](b))
	case reflect.Int8:
		Fold(op, mem.Slice[int8](a), mem.Slice[int8](b))
	case reflect.Int16:
		Fold(op, mem.Slice[int16](a), mem.Slice[int16](b))
	case reflect.Int32:
		Fold(op, mem.Slice[int32](a), mem.Slice[int32](b))
	case reflect.Int64:
		Fold(op, mem.Slice[int64](a), mem.Slice[int64](b))
	case reflect.Uint:
		Fold(op, mem.Slice[uint](a), mem.Slice[uint](b))
	case reflect.Uint8:
		Fold(op, mem.Slice[uint8](a), mem.Slice[uint8](b))
	case reflect.Uint16:
		Fold(op, mem.Slice[uint16](a), mem.Slice[uint16](b))
	case reflect.Uint32:
		Fold(op, mem.Slice[uint32](a), mem.Slice[uint32](b))
	case reflect.Uint64:
		Fold(op, mem.Slice[uint64](a), mem.Slice[uint64](b))
	case reflect.Uintptr:
		Fold(op, mem.Slice[uintptr](a), mem.Slice[uintptr](b))
	case reflect.Float32:
		Fold(op, mem.Slice[float32](a), mem.Slice[float32](b))
	case reflect.Float64:
		Fold(op, mem.Slice[float64](a), mem.Slice[float64](b))
	}
}
