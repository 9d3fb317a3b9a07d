package predict

import "errors"

// Cache is what the predictor needs of a registration cache, or of the table of firehoses held at other ranks. Its
// methods are called by the helper alone, at most one of Register and Deregister in a step, and may take as long as a
// registration takes.
type Cache interface {
	// Registered reports whether r is registered, by whomever.
	Registered(r Region) bool
	// Register makes r registered ahead of its use. Whoever needs r meanwhile waits for this registration. A cache
	// at its limit first drops idle regions that nobody expects; if that is not enough it returns ErrLimit. It
	// returns ErrGone when what r stood for no longer exists.
	Register(r Region) error
	// Deregister gives r back and reports true, unless somebody refers to it or it is not registered.
	Deregister(r Region) bool
	// Expect tells the cache when the next use of r is predicted: its own replacement takes the latest first.
	Expect(r Region, at Nanos)
	// Len returns the entries that a look-up compares at worst.
	Len() int
}

// Elsewhere is set in the numbers of regions that another limit bounds than that of the others, such as buckets of other
// ranks' memory. None is given back to make room for one of the other kind.
const Elsewhere Region = 1 << 63

// ErrLimit says that a registration would exceed the limit on pinned memory.
var ErrLimit = errors.New("over the limit on registered memory")

// ErrGone says that a region's memory is no longer there.
var ErrGone = errors.New("the region's memory is gone")
