package predict

// Trial returns what does once, for who measures t_hash, what a predictor does of a use before it decides anything: a signature, a look
// into the call-site table and its update. The uses are of so many call sites, at least one, in turns.
func Trial(sites int) func() {
	t := table{sites: map[uint64]*site{}, regions: map[Region]*region{}, limit: sites}
	uses := make([]Use, sites)
	for i := range uses {
		u := &uses[i]
		u.Buf, u.Region, u.Before = uint64(i)<<16, Region(i+1), uint64(i)*factor
		for k := range u.Stack {
			u.Stack[k] = uintptr(i + k)
		}
		t.learn(u)
	}
	next := 0
	return func() {
		u := &uses[next]
		u.At += 1000
		t.learn(u)
		if next++; next == sites {
			next = 0
		}
	}
}

// learn takes in a use, for Trial.
func (t *table) learn(u *Use) {
	s := t.site(Signature(u, Config{}.withDefaults().Window))
	s.observe(u.At, 0, 0, 0)
	t.attach(s, u.Region, 1)
}
