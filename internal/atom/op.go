package atom

import (
	"errors"
	"math"
	"reflect"
)

// Op is what an atomic does to an element.
type Op uint8

// The atomics. All return the old value; Accumulate uses the same names, up to Replace, without it.
const (
	Sum Op = iota
	Prod
	Min
	Max
	And
	Or
	Xor
	Replace
	CompareSwap
	Load // changes nothing
)

func (a Op) String() string {
	return [...]string{"sum", "prod", "min", "max", "and", "or", "xor", "replace", "compare-swap", "load"}[a]
}

// Fetch names the atomic that returns the old value, in the API's words.
func (a Op) Fetch() string {
	return [...]string{"fetch-add", "fetch-prod", "fetch-min", "fetch-max", "fetch-and", "fetch-or", "fetch-xor", "swap", "compare-swap", "load"}[a]
}

// ErrUndefined: the operation is not defined for the element type.
var ErrUndefined = errors.New("operation is not defined for this element type")

// Combine returns what the element of kind k with the bits old becomes. For CompareSwap x is what is expected
// and y what is stored then; elsewhere x is the operand.
func Combine(a Op, k reflect.Kind, old, x, y uint64) uint64 {
	switch a {
	case Replace:
		return x
	case Load:
		return old
	case CompareSwap:
		if old == x {
			return y
		}
		return old
	case And:
		return old & x
	case Or:
		return old | x
	case Xor:
		return old ^ x
	}
	switch k {
	case reflect.Float64:
		return math.Float64bits(arith(a, math.Float64frombits(old), math.Float64frombits(x)))
	case reflect.Float32:
		return uint64(math.Float32bits(arith(a, math.Float32frombits(uint32(old)), math.Float32frombits(uint32(x)))))
	case reflect.Int8:
		return uint64(uint8(arith(a, int8(old), int8(x))))
	case reflect.Int16:
		return uint64(uint16(arith(a, int16(old), int16(x))))
	case reflect.Int32:
		return uint64(uint32(arith(a, int32(old), int32(x))))
	case reflect.Int, reflect.Int64:
		return uint64(arith(a, int64(old), int64(x)))
	case reflect.Uint8:
		return uint64(arith(a, uint8(old), uint8(x)))
	case reflect.Uint16:
		return uint64(arith(a, uint16(old), uint16(x)))
	case reflect.Uint32:
		return uint64(arith(a, uint32(old), uint32(x)))
	default:
		return arith(a, old, x)
	}
}

type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func arith[T number](a Op, old, x T) T {
	switch a {
	case Prod:
		return old * x
	case Min:
		return min(old, x)
	case Max:
		return max(old, x)
	default:
		return old + x
	}
}
