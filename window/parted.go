package window

// parted is the question of a wait whether members close their worlds: whoever does releases no lock any more, and comes to no epoch. It waits for none of
// them. The zero value for a window has asked nobody.
type parted struct {
	w      *core
	closes func(rank int) error
}

// of returns an error wrapping transport.ErrPeerGone that names the member once it is known that it closes its world. Of this rank it is not.
func (p *parted) of(member int) error {
	if member == p.w.team.Rank() {
		return nil
	}
	if p.closes == nil {
		p.closes = p.w.team.Parting()
	}
	return p.closes(p.w.remotes[member].Rank)
}

// all returns such an error that names one of the other members once it is known that each of them closes its world, or is gone.
func (p *parted) all() (last error) {
	stay := false
	for m := range p.w.remotes {
		if m == p.w.team.Rank() || p.w.e.Peers.Check(p.w.remotes[m].Rank) != nil {
			continue
		}
		err := p.of(m)
		stay = stay || err == nil // the others are asked all the same
		last = err
	}
	if stay {
		return nil
	}
	return last
}
