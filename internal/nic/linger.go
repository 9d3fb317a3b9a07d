package nic

import "gopgas/internal/sched"

// server is the Domain for waits that linger (sched.Server): they poll, so whoever attends keeps out of the way, as while others do.
type server struct {
	sched.Server
	n *NIC
}

func (s server) Hush(how sched.Polling) {
	if how == sched.Steadily {
		s.n.pollers.Add(1)
		s.n.begun()
	}
	s.Server.Hush(how)
	if how != sched.Steadily {
		s.n.pollers.Add(-1)
	}
}

// server returns what waits linger for; nil: peers need none of this rank's threads.
func (n *NIC) server() sched.Server {
	if d, ok := n.Domain.(sched.Server); ok {
		return server{d, n}
	}
	return nil
}
