package atom

import (
	"fmt"
	"reflect"

	"github.com/cespare/xxhash/v2"
)

// Elem describes an element type for atomics.
type Elem struct {
	Kind  reflect.Kind
	Bytes int
}

// ElemOf describes T.
func ElemOf[T any]() Elem { return ElemFor((*T)(nil)) }

// ElemFor describes the type that of points to.
func ElemFor(of any) Elem {
	t := reflect.TypeOf(of).Elem()
	return Elem{Kind: t.Kind(), Bytes: int(t.Size())}
}

// Word64 describes the words that flags, locks and counters are made of.
func Word64() Elem { return Elem{reflect.Uint64, 8} }

// Exact reports whether elements of a type that has arithmetic combine to the same bits in any order: integers do.
func (t Elem) Exact() bool { return t.Kind != reflect.Float32 && t.Kind != reflect.Float64 }

// Check returns an error unless op is defined for the type.
func (t Elem) Check(op Op) error {
	isInt := t.Kind >= reflect.Int && t.Kind <= reflect.Uintptr
	isFloat := t.Kind == reflect.Float32 || t.Kind == reflect.Float64
	bits := op == And || op == Or || op == Xor
	if op > Load {
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

// composite is set in the codes of types that are made of others.
const composite = 1 << 15

// TypeCode tells element types apart, in 16 bits: those of one number by Elem.Code, whatever their name, others by a hash of their name and size.
func TypeCode[T any]() int { return typeCode((*T)(nil)) }

func typeCode(of any) int {
	t := reflect.TypeOf(of).Elem()
	if t.Kind() == reflect.Struct || t.Kind() == reflect.Array {
		const mul = 0x9e3779b97f4a7c15
		return composite | int((xxhash.Sum64String(t.String())+uint64(t.Size()))*mul>>49)
	}
	return ElemFor(of).Code()
}

// NameOf is the name of the type that has the code. Of a struct or an array there is no more than the code itself.
func NameOf(code int) string {
	if code&composite != 0 {
		return fmt.Sprintf("a struct or array (type %04x)", code)
	}
	return reflect.Kind(code >> 4).String()
}

// Fits reports whether an element of the type can lie at addr.
func (t Elem) Fits(addr uint64) bool {
	return (t.Bytes == 1 || t.Bytes == 2 || t.Bytes == 4 || t.Bytes == 8) && addr%uint64(t.Bytes) == 0
}
