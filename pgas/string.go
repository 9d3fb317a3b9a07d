package pgas

import (
	"fmt"
	"reflect"
)

// What objects are in a few words: fmt prints these for them. None of them asks another rank.

// String says which rank this is, and of how many.
func (w *World) String() string { return fmt.Sprintf("rank %d of a world of %d", w.Rank(), w.Size()) }

// String says how many elements of what type the array has, and how they lie.
func (a *Array[T]) String() string {
	return fmt.Sprintf("array of %d %v, %v, over a team of %d", a.d.n, typeName((*T)(nil)), a.d.Layout, a.Team().Size())
}

// String says how large the matrix is, and how it is cut.
func (m *Matrix[T]) String() string {
	s := fmt.Sprintf("matrix of %d by %d %v, in %d by %d blocks", m.rd.n, m.cd.n, typeName((*T)(nil)), m.g.Rows, m.g.Cols)
	if m.g.Ghost > 0 {
		s += fmt.Sprintf(" with ghost cells of width %d", m.g.Ghost)
	}
	return s
}

// String says where p points.
func (p Ptr[T]) String() string {
	if p.w == nil {
		return fmt.Sprintf("nil pointer to %v", typeName((*T)(nil)))
	}
	return fmt.Sprintf("pointer to %v %d of member %d", typeName((*T)(nil)), p.disp, p.member)
}

// typeName is the name of the type that of points to. A generic method that named package reflect itself would have who imports it compile more.
func typeName(of any) string { return reflect.TypeOf(of).Elem().String() }
