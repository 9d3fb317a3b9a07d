package pgas

import (
	"context"
	"fmt"

	"gopgas/internal/atom"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/window"
)

// partial is what some elements combine to, in order; nothing where there are none. Members give it to each other.
type partial[T pgsync.Number] struct {
	Value T
	Any   bool
	Op    pgsync.Op // set by gathered
}

// add combines it with one more element, behind the others.
func (p *partial[T]) add(kind atom.Elem, op pgsync.Op, v T) {
	if !p.Any {
		p.Value, p.Any = v, true
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

// gathered returns those of all members. All get an error if their ops differ. Collective.
func gathered[T pgsync.Number](ctx context.Context, name string, t *Team, op pgsync.Op, mine partial[T]) ([]partial[T], error) {
	mine.Op = op
	all := make([]partial[T], t.Size())
	if err := pgsync.AllGather(ctx, t, all, []partial[T]{mine}); err != nil {
		return nil, err
	}
	for m, p := range all {
		if p.Op != op {
			return nil, transport.NewOpError(name, -1, fmt.Errorf("%w: %s here and %s on member %d", pgsync.ErrMismatch, op, p.Op, m))
		}
	}
	return all, nil
}

// reduces returns an error unless op combines elements of a kind.
func reduces(kind atom.Elem, op pgsync.Op) error {
	err := kind.Check(op)
	if err == nil && op >= atom.Replace {
		err = fmt.Errorf("%w: %s is not a reduction", window.ErrType, op)
	}
	return err
}
