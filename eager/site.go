package eager

// Call sites whose puts are followed by a flush at once are learned: for those the completion is waited for anyway.
const (
	siteBits   = 10
	siteMost   = 3 // a count of two bits: one exception does not change the mind
	siteSure   = 2
	siteMargin = 1 // what a call site that is not known begins with
)

// sites predicts for each call site of puts whether a flush is what follows. Sites that share a place disturb each
// other's prediction, never a result. The zero value is ready; the owner's lock guards it.
type sites struct {
	count   [1 << siteBits]uint8
	known   [1 << siteBits]bool
	last    int
	pending bool // the last operation was a put, from place last
}

func sitePlace(site uint64) int { return int(site * 0x9e3779b97f4a7c15 >> (64 - siteBits)) }

// put notes a put from a call site and predicts whether a flush follows.
func (s *sites) put(site uint64) bool {
	s.other()
	s.last, s.pending = sitePlace(site), true
	return s.known[s.last] && s.count[s.last] >= siteSure
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

func (s *sites) learn(i int, flushed bool) {
	if !s.known[i] {
		s.known[i], s.count[i] = true, siteMargin
	}
	switch {
	case flushed && s.count[i] < siteMost:
		s.count[i]++
	case !flushed && s.count[i] > 0:
		s.count[i]--
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
