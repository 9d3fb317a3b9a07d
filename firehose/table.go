package firehose

import "math/bits"

// index finds the place of a bucket's record: a hash table with open addressing, half full at most, that grows
// and shrinks with what is in it. The zero index is empty.
type index struct {
	cells []cell
	n     int
	shift uint8 // 64 minus the binary logarithm of the cells
}

// cell is a place of the table. The zero cell is free.
type cell struct {
	key Bucket
	at  int32 // place of the record, plus one
}

// spread is 2^64 divided by the golden ratio: neighbouring buckets land far apart, and all bits of the name count.
const spread = 0x9e3779b97f4a7c15

// leastCells is the size of a small table.
const leastCells = 16

// find returns the place of b's record, and -1 where there is none.
func (x *index) find(b Bucket) int32 {
	cells := x.cells
	if len(cells) == 0 {
		return -1
	}
	for i := uint64(b) * spread >> x.shift; ; i++ {
		c := &cells[i&uint64(len(cells)-1)]
		if c.key == b && c.at != 0 {
			return c.at - 1
		}
		if c.at == 0 {
			return -1
		}
	}
}

// insert enters b, which is not in the table.
func (x *index) insert(b Bucket, at int32) {
	if 2*(x.n+1) > len(x.cells) {
		x.resize(max(leastCells, 2*len(x.cells)))
	}
	x.n++
	x.put(cell{b, at + 1})
}

func (x *index) put(c cell) {
	mask := uint64(len(x.cells) - 1)
	i := uint64(c.key) * spread >> x.shift
	for x.cells[i&mask].at != 0 {
		i++
	}
	x.cells[i&mask] = c
}

func (x *index) resize(size int) {
	old := x.cells
	x.cells = make([]cell, size)
	x.shift = uint8(64 - bits.Len(uint(size-1)))
	for _, c := range old {
		if c.at != 0 {
			x.put(c)
		}
	}
}

// remove takes b, which is in the table, out of it, and closes the gap.
func (x *index) remove(b Bucket) {
	mask := uint64(len(x.cells) - 1)
	i := uint64(b) * spread >> x.shift
	for x.cells[i&mask].key != b || x.cells[i&mask].at == 0 {
		i++
	}
	for j := i + 1; x.cells[j&mask].at != 0; j++ {
		// What stands at j may fill the gap unless its own place lies behind the gap.
		home := uint64(x.cells[j&mask].key) * spread >> x.shift
		if (j-home)&mask >= (j-i)&mask {
			x.cells[i&mask] = x.cells[j&mask]
			i = j
		}
	}
	x.cells[i&mask] = cell{}
	x.n--
	if x.n == 0 {
		*x = index{}
	} else if 8*x.n < len(x.cells) && len(x.cells) > leastCells {
		x.resize(len(x.cells) / 2)
	}
}

// leastSlab is the size of a small slab.
const leastSlab = 16

// sparse reports whether a slab of size places has so few records left, n, that they are moved together. Three quarters of those that
// it once held were taken out since it was made or last moved, so each removal pays for less than half a move.
func sparse(n, size int) bool { return size > leastSlab && 4*n < size }

// roomFor is the size of a slab to which n records move.
func roomFor(n int) int { return max(leastSlab, 2*n) }

// chain is a queue through records that lie in a slice: the unused ones, in the order in which they fell idle.
type chain struct {
	links      []link // by place; grows with the records
	head, tail int32  // places plus one; 0: none
}

// link is a record's neighbours, as places plus one.
type link struct{ prev, next int32 }

// push appends the record at i.
func (c *chain) push(i int32) {
	for int(i) >= len(c.links) {
		c.links = append(c.links, link{})
	}
	c.links[i] = link{prev: c.tail}
	if c.tail != 0 {
		c.links[c.tail-1].next = i + 1
	} else {
		c.head = i + 1
	}
	c.tail = i + 1
}

// pushFirst puts the record at i, which is not in the chain, before all others.
func (c *chain) pushFirst(i int32) {
	c.links[i] = link{next: c.head}
	if c.head != 0 {
		c.links[c.head-1].prev = i + 1
	} else {
		c.tail = i + 1
	}
	c.head = i + 1
}

// remove takes the record at i, which is in the chain, out of it.
func (c *chain) remove(i int32) {
	l := c.links[i]
	if l.prev != 0 {
		c.links[l.prev-1].next = l.next
	} else {
		c.head = l.next
	}
	if l.next != 0 {
		c.links[l.next-1].prev = l.prev
	} else {
		c.tail = l.prev
	}
}

// first returns the oldest record's place, and -1 where there is none.
func (c *chain) first() int32 { return c.head - 1 }

// after returns the place of the next younger record than i's, and -1 behind the last.
func (c *chain) after(i int32) int32 { return c.links[i].next - 1 }

// together moves the records of a slab together, those of the chain first and in its order, and returns the new slab, of which index and
// chain tell then. of is a record's bucket; used is false for a place that has none.
func together[T any](old []T, at *index, idle *chain, of func(*T) (b Bucket, used bool)) []T {
	slab, waiting := make([]T, 0, roomFor(at.n)), *idle
	*at, *idle = index{}, chain{}
	var none T
	move := func(i int32, b Bucket) (to int32) {
		to = int32(len(slab))
		slab = append(slab, old[i])
		at.insert(b, to)
		old[i] = none
		return to
	}
	for i := waiting.first(); i >= 0; i = waiting.after(i) {
		b, _ := of(&old[i])
		idle.push(move(i, b))
	}
	for i := range old {
		if b, used := of(&old[i]); used {
			move(int32(i), b)
		}
	}
	return slab
}
