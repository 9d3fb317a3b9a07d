package sched

// Served tells the race detector that the caller, who serves other ranks, has read or changed this rank's memory for one
// of them. What orders that before the rank's own later use is a flag that another process sets in shared memory, which
// the detector cannot follow. It costs nothing where there is no detector.
func (s *Sched) Served() {
	if raceEnabled {
		s.served.Add(1)
	}
}

// Seen is the other half: whatever was Served happened before what its caller does next. The end of every wait calls it;
// where a condition holds at once, so that no wait begins, it is called on its own.
func (s *Sched) Seen() {
	if raceEnabled {
		s.served.Load()
	}
}
