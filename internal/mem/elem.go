package mem

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// ErrElem is wrapped by the error of CheckElem.
var ErrElem = errors.New("element type cannot live in shared memory")

// CheckElem returns an error unless T has a size of at least one byte and holds no pointers: no pointer,
// slice, string, map, channel, function or interface at any depth.
func CheckElem[T any]() error { return CheckFor((*T)(nil)) }

// CheckFor is CheckElem of the type that of points to.
func CheckFor(of any) error {
	if t := reflect.TypeOf(of).Elem(); !number(t) {
		return checkMade(t)
	}
	return nil
}

// number reports whether t is of a kind that numbers have, as most elements are: calls ask this, and it must cost them nothing.
func number(t reflect.Type) bool {
	kind := t.Kind()
	return kind >= reflect.Bool && kind <= reflect.Complex128
}

// fit are the types made of others that have been found to be fit, since looking into one allocates.
var fit sync.Map

// checkMade is CheckFor of types that are made of others.
func checkMade(t reflect.Type) error {
	if _, known := fit.Load(t); known {
		return nil
	}
	if t.Size() == 0 {
		return fmt.Errorf("%w: %s has no size", ErrElem, t)
	}
	if path, ok := findPointer(t, t.String()); ok {
		return fmt.Errorf("%w: %s holds a pointer (%s); the garbage collector does not see copies in another rank's memory: "+
			"use indices, fixed arrays or numbers instead", ErrElem, t, path)
	}
	fit.Store(t, nil)
	return nil
}

// findPointer returns the path to the first pointer in t.
func findPointer(t reflect.Type, path string) (string, bool) {
	if number(t) {
		return "", false
	}
	switch t.Kind() {
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
