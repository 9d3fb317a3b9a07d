package window

import "fmt"

// What objects are in a few words: fmt prints these for them. None of them asks another rank.

// String says what the window's elements are, and how many this rank and all members have.
func (w *Window[T]) String() string {
	return w.c.describe((*T)(nil))
}

func (w *core) describe(of any) string {
	s := fmt.Sprintf("window of %v", elemType(of))
	if w.freed {
		return s + ", freed"
	}
	all := 0
	for m := range w.remotes {
		all += w.size(m)
	}
	return fmt.Sprintf("%s, %d of %d elements on this rank, member %d of %d", s, w.size(w.team.Rank()), all, w.team.Rank(), w.team.Size())
}

// String says what can be attached, and how much this rank has.
func (d *Dynamic[T]) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := fmt.Sprintf("dynamic window of %v", elemType((*T)(nil)))
	if d.freed {
		return s + ", freed"
	}
	return fmt.Sprintf("%s, %d attached by this rank, member %d of %d", s, len(d.mine), d.team.Rank(), d.team.Size())
}

// String says whose memory it is, and how much.
func (r Ref) String() string {
	if r.Len == 0 {
		return "nothing attached"
	}
	return fmt.Sprintf("%d elements attached by member %d", r.Len, r.Member)
}

// String says how many elements there are.
func (v View[T]) String() string { return viewed("view", v.p) }

// String says how many elements there are.
func (a Atomic[T]) String() string { return viewed("atomic view", a.p) }

func viewed[T any](what string, p *part[T]) string {
	n := 0
	if p != nil {
		n = len(p.s)
	}
	return counted(what, n, (*T)(nil))
}

func counted(what string, n int, of any) string {
	return fmt.Sprintf("%s of %d %v", what, n, elemType(of))
}

// String returns the kind of lock.
func (kind LockKind) String() string {
	if kind == LockShared {
		return "shared"
	}
	return "exclusive"
}
