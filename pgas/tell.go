package pgas

import "time"

// tellPause is how often a rank looks whether others are gone that its calls reach without asking. It and what it takes to learn of a death
// are well within a second.
const tellPause = 200 * time.Millisecond

// tellDeaths has windows that are used directly learn of deaths, whoever has noticed them. The calls themselves do not look: a look at
// another word would take them longer than what they do.
func (w *World) tellDeaths() {
	if e := w.engine; e.Mapper() == nil || e.CountsMapped() || w.nextNeighbour(w.Rank()) < 0 {
		return // no window is used directly, or there is nobody to reach so
	}
	stop, done := make(chan struct{}), make(chan struct{})
	w.stop = append(w.stop, func() {
		close(stop)
		<-done // it looks at shared memory, which goes next
	})
	go func() {
		defer close(done)
		t := time.NewTicker(tellPause)
		defer t.Stop()
		for known := 0; ; known = w.engine.TellDeaths(known) {
			select {
			case <-t.C:
			case <-stop:
				return
			}
		}
	}()
}
