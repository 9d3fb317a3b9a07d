package atom

import "gopgas/internal/mem"

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
