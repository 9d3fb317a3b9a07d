package mem

import (
	"unsafe"
	"weak"
)

// Names has numbers for memory that are the same in every run of a program, where addresses are the allocator's, and one is another object's when the
// collector has been there. In virtual time what is remembered by address goes by these instead. They are given in the order in which memory is first
// asked for. A nil *Names is that of real time: there a name is the address. It belongs to one goroutine at a time.
type Names struct {
	objects map[uintptr]object // of the Go heap, by address
	last    uint64             // object's number
	given   uint64             // names
	names   map[within]uint64
	sweep   int // how many there may be before the next look for those of dead objects
}

// object is one of the heap.
type object struct {
	number uint64 // from 1
	alive  weak.Pointer[byte]
}

// within is a place in an object; in object 0, which is what is not Go's, by its address.
type within struct{ object, at uint64 }

const (
	nameBits    = 12 // names are as far apart as small pages, since tables spread addresses
	leastSwept  = 1024
	nobodysName = 0
)

// NewNames returns names of which none has been given.
func NewNames() *Names {
	return &Names{objects: make(map[uintptr]object), names: make(map[within]uint64), sweep: leastSwept}
}

// Of returns the name of r's first byte. What may lie on a stack, which moves and is then another goroutine's, has none: 0.
func (n *Names) Of(r Range) uint64 {
	if n == nil {
		return r.Addr()
	}
	return n.of(r)
}

func (n *Names) of(r Range) uint64 {
	w := within{at: r.Addr()}
	switch OriginOf(r) {
	case Unknown:
		return nobodysName
	case Heap:
		base, _, _ := findObject(uintptr(r.Base), 0, 0)
		w = within{n.object(r, base), w.at - uint64(base)}
	}
	name, ok := n.names[w]
	if !ok {
		n.clean()
		n.given++
		name = n.given << nameBits
		n.names[w] = name
	}
	return name
}

// object returns the number of the object at base, in which r lies.
func (n *Names) object(r Range, base uintptr) uint64 {
	if o, ok := n.objects[base]; ok && o.alive.Value() != nil {
		return o.number
	}
	n.last++
	first := (*byte)(unsafe.Add(hidden(r.Base), -int(uintptr(r.Base)-base)))
	n.objects[base] = object{n.last, weak.Make(first)}
	return n.last
}

// clean forgets dead objects, now and then. Their names are nobody's from then on, as they were before.
func (n *Names) clean() {
	if len(n.names) < n.sweep {
		return
	}
	live := map[uint64]bool{0: true}
	for base, o := range n.objects {
		if o.alive.Value() == nil {
			delete(n.objects, base)
		} else {
			live[o.number] = true
		}
	}
	for w := range n.names {
		if !live[w.object] {
			delete(n.names, w)
		}
	}
	n.sweep = max(leastSwept, 2*len(n.names))
}
