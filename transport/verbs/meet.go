package verbs

import "gopgas/transport/verbs/internal/side"

// meeting is what a listener knows when a peer dials.
type meeting struct {
	me, peer int
	dialing  bool   // this rank is dialing the peer
	newer    bool   // this rank has a connection with the peer that the dialer did not know of when it dialed
	self     uint64 // instance that the dialer looks for, and that this domain has
	wants    uint64
	job      bool // the dialer is of this job
	size     int  // of the job
}

// meet decides what a listener says to a dialer. When both dial, the lower rank's dial is the one that counts. A
// connection that the dialer does not know of yet has been made by a dial of this side that it will see at once; one
// that it knows of has ended on its side, and the news has not come yet.
func meet(m meeting) side.Word {
	switch {
	case !m.job:
		return side.WordJob
	case m.self != m.wants:
		return side.WordInstance
	case m.peer < 0 || m.peer >= m.size || m.peer == m.me:
		return side.WordRank
	case m.dialing && m.me < m.peer, m.newer:
		return side.WordYield
	default:
		return side.WordAccept
	}
}
