package superpipe

import (
	"sync/atomic"

	"gopgas/transport"
)

// spyNIC looks at the chunks that an origin posts.
type spyNIC struct {
	NIC
	check func(ops []transport.Op)
	posts atomic.Int64
}

func (s *spyNIC) Post(ops []transport.Op) (int, error) {
	if ops[0].Cookie-originCookies < CookieSpan {
		s.check(ops)
		s.posts.Add(1)
	}
	return s.NIC.Post(ops)
}
