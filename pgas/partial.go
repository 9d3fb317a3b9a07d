package pgas

import (
	"fmt"

	"gopgas/internal/atom"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// partial is what some elements combine to, in order; nothing where there are none. Members give it to each other.
type partial[T pgsync.Number] struct {
	Value T
	Any   bool
}

// add combines it with one more element, behind the others.
func (p *partial[T]) add(kind atom.Elem, op pgsync.Op, v T) {
	if !p.Any {
		*p = partial[T]{v, true}
		return
	}
	p.Value = combine(kind, op, p.Value, v)
}

// join combines it with those of o, behind it.
func (p *partial[T]) join(kind atom.Elem, op pgsync.Op, o partial[T]) {
	if o.Any {
		p.add(kind, op, o.Value)
	}
}

// reduces returns an error unless op combines elements of a kind.
func reduces(kind atom.Elem, op pgsync.Op) error {
	err := kind.Check(op)
	if err == nil && op >= atom.Replace {
		err = fmt.Errorf("%w: %s is not a reduction", window.ErrType, op)
	}
	return err
}
