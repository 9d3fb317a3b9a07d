package rpc

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"reflect"

	"gopgas/internal/mem"
)

// codec turns values of type T into bytes and back. Plain memory travels as it is: numbers, and arrays and structs without pointers; strings; slices of plain
// memory. Other values travel as package gob has them.
type codec[T any] struct {
	form form
	elem int // bytes of an element of a slice
}

type form uint8

const (
	empty form = iota // no bytes at all
	plain
	text
	list
	made // gob's
)

func codecOf[T any]() codec[T] {
	t := reflect.TypeFor[T]()
	switch {
	case t.Size() == 0:
		return codec[T]{form: empty}
	case mem.CheckElem[T]() == nil:
		return codec[T]{form: plain}
	case t.Kind() == reflect.String:
		return codec[T]{form: text, elem: 1}
	case t.Kind() == reflect.Slice && mem.CheckFor(reflect.Zero(reflect.PointerTo(t.Elem())).Interface()) == nil:
		return codec[T]{form: list, elem: int(t.Elem().Size())}
	}
	return codec[T]{form: made}
}

// atOnce reports whether decoding runs none of the program's code and takes no longer than a copy.
func (c codec[T]) atOnce() bool { return c.form != made }

// bytes returns the value's bytes, which may be its own memory.
func (c codec[T]) bytes(v *T) ([]byte, error) {
	switch c.form {
	case empty:
		return nil, nil
	case plain:
		return mem.One(v).Data(), nil
	case text, list:
		r := reflect.ValueOf(v).Elem()
		return mem.Range{Base: r.UnsafePointer(), Bytes: r.Len() * c.elem}.Data(), nil
	}
	if r := reflect.ValueOf(v).Elem(); r.Kind() == reflect.Pointer && r.IsNil() {
		return nil, nil // gob would make it point to a zero
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).EncodeValue(reflect.ValueOf(v)); err != nil {
		return nil, fmt.Errorf("%s as bytes: %w", reflect.TypeFor[T](), err)
	}
	return b.Bytes(), nil
}

// value makes v the value that b stands for. It keeps nothing of b.
func (c codec[T]) value(b []byte, v *T) error {
	switch c.form {
	case empty:
		return c.exactly(b, 0)
	case plain:
		if err := c.exactly(b, mem.SizeOf[T]()); err != nil {
			return err
		}
		copy(mem.One(v).Data(), b)
		return nil
	case text:
		reflect.ValueOf(v).Elem().SetString(string(b))
		return nil
	case list:
		n := len(b) / c.elem
		if err := c.exactly(b, n*c.elem); err != nil || n == 0 {
			return err
		}
		s := reflect.MakeSlice(reflect.TypeFor[T](), n, n)
		copy(mem.Range{Base: s.UnsafePointer(), Bytes: len(b)}.Data(), b)
		reflect.ValueOf(v).Elem().Set(s)
		return nil
	}
	if len(b) == 0 && reflect.TypeFor[T]().Kind() == reflect.Pointer {
		return nil
	}
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(v); err != nil {
		return fmt.Errorf("%s from %d bytes: %w", reflect.TypeFor[T](), len(b), err)
	}
	return nil
}

func (c codec[T]) exactly(b []byte, want int) error {
	if len(b) == want {
		return nil
	}
	return fmt.Errorf("%d bytes came, %s has %d: not all ranks run the same program", len(b), reflect.TypeFor[T](), want)
}
