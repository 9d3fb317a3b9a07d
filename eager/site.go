package eager

// Call sites whose puts are followed by a flush at once are learned: for those the completion is waited for anyway.
const (
	siteBits   = 9
	siteMost   = 3 // a count of two bits: one exception does not change the mind
	siteSure   = 2
	siteMargin = 1 // what a call site that is not known begins with
)

// sites predicts for each call site of puts whether a flush is what follows. It knows the last two of those that share a place, of which one is
// told from the other; a third is forgotten the earlier. The zero value is ready; the owner's lock guards it.
type sites struct {
	seen    [1 << siteBits][2]site // by place, the last one first
	last    int
	pending bool // the last operation was a put, from the first site of place last
}

// site is one call site.
type site struct {
	tag   uint32 // what tells it from others; 0: nobody's
	count uint8
}

func sitePlace(at uint64) (place int, tag uint32) {
	mixed := at * 0x9e3779b97f4a7c15
	return int(mixed >> (64 - siteBits)), uint32(mixed) | 1
}

// put notes a put from a call site and predicts whether a flush follows.
func (s *sites) put(at uint64) bool {
	s.other()
	place, tag := sitePlace(at)
	s.last, s.pending = place, true
	two := &s.seen[place]
	switch tag {
	case two[0].tag:
	case two[1].tag:
		two[0], two[1] = two[1], two[0]
	default:
		two[0], two[1] = site{tag, siteMargin}, two[0]
	}
	return two[0].count >= siteSure
}

// other notes an operation that is no flush.
func (s *sites) other() {
	if s.pending {
		s.learn(s.last, false)
		s.pending = false
	}
}

// flush notes a flush.
func (s *sites) flush() {
	if s.pending {
		s.learn(s.last, true)
		s.pending = false
	}
}

func (s *sites) learn(place int, flushed bool) {
	switch c := &s.seen[place][0].count; {
	case flushed && *c < siteMost:
		*c++
	case !flushed && *c > 0:
		*c--
	}
}

// Sites predicts, as a Chooser does, whether a flush follows a put, for who has no costs to choose by. The zero Sites has seen nothing. It is
// for one goroutine at a time, and allocates nothing.
type Sites struct{ s sites }

// Put notes a put from a call site, and predicts whether a flush is what follows it.
func (s *Sites) Put(site uint64) (flushed bool) { return s.s.put(site) }

// Other notes an operation that is no put.
func (s *Sites) Other() { s.s.other() }

// Flushed notes a flush.
func (s *Sites) Flushed() { s.s.flush() }
