package selector

import (
	"gopgas/internal/superpipe"
	"gopgas/transport"
)

// Machine is what Select's costs are computed from. Times are in seconds.
type Machine struct {
	Caps  transport.Caps
	Model superpipe.Model // the wire, the copies, registration

	First   float64 // of a byte, what it takes more when the NIC uses the caller's memory for the first time
	Post    float64 // of handing an operation to the NIC
	Lookup  float64 // in the registration cache
	Handler float64 // between a message's arrival and the end of its handler, but for the copy

	Slotted, Piped Tuning // of what goes through several slots, and of the superpipeline

	// Puts and Gets are what transfers take beside all that is above, by protocol: this library's part, and what slots that have
	// just been written cost the NIC.
	Puts, Gets [Protocols]More

	// Runs are what each of some puts takes that are flushed together, by protocol, all and all; between the sizes that were measured.
	Runs [Protocols]More

	Slot     int  // of the bounce pool, bytes
	Slots    int  // how many it has
	Payload  int  // of an active message, bytes; 0: there are none
	BulkSlot int  // of the superpipeline, bytes
	Fold     int  // slots that one of its transfers uses
	Lease    bool // the NIC has a way for copied chunks
	Idle     bool // a core is free for the helper that registers a hybrid's tail
}

// More is what transfers of growing sizes take beside what a model says, which may be less than nothing. The zero More is none.
type More []struct {
	Bytes   int
	Seconds float64
}

// At is what a transfer of so many bytes takes more: straight lines between the points, and the first or the last beyond them.
func (o More) At(bytes int) float64 {
	for i, p := range o {
		switch {
		case bytes > p.Bytes:
		case i == 0:
			return p.Seconds
		default:
			last := o[i-1]
			return last.Seconds + (p.Seconds-last.Seconds)*float64(bytes-last.Bytes)/float64(p.Bytes-last.Bytes)
		}
	}
	if len(o) == 0 {
		return 0
	}
	return o[len(o)-1].Seconds
}

// Has reports whether so many bytes are between the first point and the last.
func (o More) Has(bytes int) bool {
	return len(o) > 0 && o[0].Bytes <= bytes && bytes <= o[len(o)-1].Bytes
}

// Onward is the size of a More's last point where that says how it goes on beyond all that was measured.
const Onward = 1 << 40

// tried reports whether transfers of so many bytes, or of more and of less, were measured, or such as are as good as they: the shortest.
func (o More) tried(bytes int) bool {
	k := len(o)
	if k > 0 && o[k-1].Bytes == Onward {
		k--
	}
	return k > 0 && bytes <= o[k-1].Bytes
}

// first is what so many bytes of a query's memory take more if they are new to the NIC.
func (m *Machine) first(q Query, bytes float64) float64 {
	if q.Seen {
		return 0
	}
	return m.First * bytes
}

// newly is what a transfer of memory that is not registered pays more than one of such as is, if its registration serves so many as the query says.
func (m *Machine) newly(q Query) float64 {
	n := float64(q.Bytes)
	return (m.Model.Register(n) + m.first(q, n)) / float64(max(1, q.Uses))
}

// Tuning is what each byte behind the first chunk of a transfer costs beside what the model says, in seconds: that has copies and the NIC
// work side by side, and where both are programs on the same cores they do not, for as long as there is something to copy. The zero Tuning is
// none.
type Tuning struct{ Put, Get float64 }

// of is that cost for a transfer of which so many bytes are behind the first chunk.
func (t Tuning) of(q Query, later int) float64 {
	each := t.Put
	if q.Get {
		each = t.Get
	}
	return each * float64(later)
}
