package mem

import (
	"errors"
	"fmt"
	"reflect"
)

// ErrElem is wrapped by the error of CheckElem.
var ErrElem = errors.New("element type cannot live in shared memory")

// CheckElem returns an error unless T has a size of at least one byte and holds no pointers: no pointer,
// slice, string, map, channel, function or interface at any depth.
func CheckElem[T any]() error { return CheckFor((*T)(nil)) }

// CheckFor is CheckElem of the type that of points to.
func CheckFor(of any) error {
	t := reflect.TypeOf(of).Elem()
	if t.Size() == 0 {
		return fmt.Errorf("%w: %s has no size", ErrElem, t)
	}
	if path, ok := findPointer(t, t.String()); ok {
		return fmt.Errorf("%w: %s holds a pointer (%s); the garbage collector does not see copies in another rank's memory: "+
			"use indices, fixed arrays or numbers instead", ErrElem, t, path)
	}
	return nil
}

// findPointer returns the path to the first pointer in t.
func findPointer(t reflect.Type, path string) (string, bool) {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return "", false
	case reflect.Array:
		return findPointer(t.Elem(), path+"[0]")
	case reflect.Struct:
		for f := range t.Fields() {
			if p, ok := findPointer(f.Type, path+"."+f.Name); ok {
				return p, true
			}
		}
		return "", false
	default:
		return path + " is a " + t.Kind().String(), true
	}
}
