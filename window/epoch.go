package window

import (
	"errors"
	"fmt"
	"slices"
)

// ErrEpoch: a call that the epochs declared so far do not allow.
var ErrEpoch = errors.New("wrong epoch")

// The epochs are those of MPI (MPI-4.1, section 12.5): a rank reaches others in an access epoch, which a fence, Start,
// Lock or LockAll opens, and is reached by a group in an exposure epoch, which Post opens. A fence opens both for all.
// A fence epoch in which this rank has moved nothing ends by itself when another is opened.

// access is the kind of an access epoch.
type access uint8

const (
	noAccess access = iota
	fenced          // between two fences, nothing moved yet
	moved           // between two fences
	started         // to the targets of a Start
	locked          // to the targets that are locked, one or more
	lockedAll
)

// epoch is what a rank has declared about a window: a value. Its transitions return the next one, or an error that wraps
// ErrEpoch and leaves everything as it was.
type epoch struct {
	access  access
	targets []int // of started, in the order given; of locked, ascending
	exposed bool
	origins []int // to whom, in the order given
}

func (s epoch) String() string {
	text := [...]string{"no access epoch", "a fence epoch", "a fence epoch with transfers", "an epoch started to ", "a lock of ", "a lock of all"}[s.access]
	if s.targets != nil {
		text += fmt.Sprint(s.targets)
	}
	if s.exposed {
		text += fmt.Sprintf(", exposed to %v", s.origins)
	}
	return text
}

// refuse is the error of a call in epoch s.
func (s epoch) refuse(call, cure string) error {
	return fmt.Errorf("%w: %s in %s: %s", ErrEpoch, call, s, cure)
}

// idle reports whether another access epoch may be opened.
func (s epoch) idle() bool { return s.access <= fenced }

// fence ends a fence epoch and opens the next one.
func (s epoch) fence() (epoch, error) {
	next, err := s.fenceEnd()
	next.access = fenced
	if err != nil {
		return s, err
	}
	return next, nil
}

// fenceEnd ends a fence epoch.
func (s epoch) fenceEnd() (epoch, error) {
	if s.access > moved || s.exposed {
		return s, s.refuse("fence", "end what is open first")
	}
	return epoch{}, nil
}

// start opens an access epoch to targets.
func (s epoch) start(targets []int) (epoch, error) {
	if !s.idle() {
		return s, s.refuse("start", "end what is open first")
	}
	s.access, s.targets = started, targets
	return s, nil
}

// complete ends what start opened.
func (s epoch) complete() (epoch, error) {
	if s.access != started {
		return s, s.refuse("complete", "it ends what Start opened")
	}
	s.access, s.targets = noAccess, nil
	return s, nil
}

// post opens an exposure epoch to origins.
func (s epoch) post(origins []int) (epoch, error) {
	if s.exposed || s.access == moved {
		return s, s.refuse("post", "end what is open first")
	}
	if s.access == fenced {
		s.access = noAccess
	}
	s.exposed, s.origins = true, origins
	return s, nil
}

// wait ends what post opened.
func (s epoch) wait() (epoch, error) {
	if !s.exposed {
		return s, s.refuse("wait", "it ends what Post opened")
	}
	s.exposed, s.origins = false, nil
	return s, nil
}

// lock adds target to those that are locked.
func (s epoch) lock(target int) (epoch, error) {
	if !s.idle() && s.access != locked {
		return s, s.refuse("lock", "end what is open first")
	}
	i, found := slices.BinarySearch(s.targets, target)
	if found {
		return s, s.refuse(fmt.Sprint("lock of ", target), "this rank has locked it already; unlock it first")
	}
	s.access, s.targets = locked, slices.Insert(slices.Clone(s.targets), i, target)
	return s, nil
}

// unlock takes target from those that are locked.
func (s epoch) unlock(target int) (epoch, error) {
	i := slices.Index(s.targets, target)
	if s.access != locked || i < 0 {
		return s, s.refuse(fmt.Sprint("unlock of ", target), "it ends what Lock of the same target opened")
	}
	if s.targets = slices.Delete(slices.Clone(s.targets), i, i+1); len(s.targets) == 0 {
		s.access, s.targets = noAccess, nil
	}
	return s, nil
}

// lockAll opens an access epoch to everybody.
func (s epoch) lockAll() (epoch, error) {
	if !s.idle() {
		return s, s.refuse("lock-all", "end what is open first")
	}
	s.access = lockedAll
	return s, nil
}

// unlockAll ends what lockAll opened.
func (s epoch) unlockAll() (epoch, error) {
	if s.access != lockedAll {
		return s, s.refuse("unlock-all", "it ends what LockAll opened")
	}
	s.access = noAccess
	return s, nil
}

// reach notes an access to target, if there is an epoch for it.
func (s epoch) reach(target int) (epoch, error) {
	switch s.access {
	case fenced:
		s.access = moved
		return s, nil
	case moved, lockedAll:
		return s, nil
	case started, locked:
		if slices.Contains(s.targets, target) {
			return s, nil
		}
	}
	return s, s.refuse(fmt.Sprint("access to ", target), "open an access epoch first, by Fence, Start, Lock or LockAll")
}

// free ends the window.
func (s epoch) free() (epoch, error) {
	if s.access > moved || s.exposed {
		return s, s.refuse("free", "end what is open first")
	}
	return epoch{}, nil
}
