package atom

import (
	"fmt"
	"reflect"
)

// Elem describes an element type for atomics.
type Elem struct {
	Kind  reflect.Kind
	Bytes int
}

// ElemOf describes T.
func ElemOf[T any]() Elem {
	t := reflect.TypeFor[T]()
	return Elem{Kind: t.Kind(), Bytes: int(t.Size())}
}

// Word64 describes the words that flags, locks and counters are made of.
func Word64() Elem { return Elem{reflect.Uint64, 8} }

// Check returns an error unless op is defined for the type.
func (t Elem) Check(op Op) error {
	isInt := t.Kind >= reflect.Int && t.Kind <= reflect.Uintptr
	isFloat := t.Kind == reflect.Float32 || t.Kind == reflect.Float64
	bits := op == And || op == Or || op == Xor
	if op > CompareSwap {
		return fmt.Errorf("%w: operation %d", ErrUndefined, op)
	}
	if isInt || isFloat && !bits {
		return nil
	}
	return fmt.Errorf("%w: %s on %s", ErrUndefined, op, t.Kind)
}

// Code tells the types apart that operations tell apart, in 12 bits: int and int64 are the same, float64 is another.
func (t Elem) Code() int {
	kind := t.Kind
	switch {
	case kind == reflect.Int && t.Bytes == 8:
		kind = reflect.Int64
	case (kind == reflect.Uint || kind == reflect.Uintptr) && t.Bytes == 8:
		kind = reflect.Uint64
	}
	return int(kind)<<4 | t.Bytes&15
}

// NameOf is the name of the type that has the code.
func NameOf(code int) string { return reflect.Kind(code >> 4).String() }

// Fits reports whether an element of the type can lie at addr.
func (t Elem) Fits(addr uint64) bool {
	return (t.Bytes == 1 || t.Bytes == 2 || t.Bytes == 4 || t.Bytes == 8) && addr%uint64(t.Bytes) == 0
}
