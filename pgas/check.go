package pgas

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopgas/internal/racecheck"
)

// errRaces: the race check has found races, and Config.Check says that they are fatal. It is rank 0's error of Close.
var errRaces = errors.New("the program has races")

// errHeap: memory of goroutine ranks in a build with Go's race detector stays where that sees it.
var errHeap = errors.New("this build's race detector sees them between goroutine ranks")

// checks returns what Config.Check asks for.
func (c *Config) checks() (races, fatal bool, err error) {
	for word := range strings.SplitSeq(c.Check, ",") {
		switch {
		case word == "races":
			races = true
		case word == "fatal" && races:
			fatal = true
		case word == "declared" && races:
		case c.Check != "":
			return false, false, fmt.Errorf("%w: %s=%q: want races, races,fatal or races,declared", ErrConfig, envCheck, c.Check)
		}
	}
	return races, fatal, nil
}

// declaredOnly reports whether the race check is not to look for uses of local memory by itself.
func (c *Config) declaredOnly() bool { return slices.Contains(strings.Split(c.Check, ","), "declared") }

// startCheck makes the race check that the configuration asks for. heap is Parts.Heap.
func (w *World) startCheck(heap bool) error {
	races, _, err := w.cfg.checks()
	if err != nil || !races {
		return err
	}
	if w.check, err = racecheck.New(w.engine, w.say); err != nil || w.cfg.declaredOnly() {
		return err
	}
	unseen := errHeap
	if !heap {
		unseen = w.check.WatchLocal()
	}
	switch seen, calls := w.check.Watched(); {
	case w.Rank() != 0:
	case !seen:
		w.say(fmt.Sprintf("race check: uses of Local that are not declared go unseen: %v", unseen))
	case !calls:
		w.say("race check: system calls that are given memory of Local may fail with EFAULT: run as root, or with the sysctl " +
			"vm.unprivileged_userfaultfd=1, or get the memory by Reading or Writing, or see declared uses only (" + envCheck + "=races,declared)")
	}
	return nil
}

// endCheck ends the race check when all ranks have come to an end. Rank 0 says what it has found, and if that is fatal.
func (w *World) endCheck() (races, err error) {
	if w.check == nil {
		return nil, nil
	}
	if err := w.check.End(); err != nil {
		return nil, err
	}
	if w.Rank() != 0 {
		return nil, nil
	}
	n, err := w.check.Found()
	if err != nil {
		return nil, fmt.Errorf("count the races: %w", err)
	}
	switch n {
	case 0:
		w.say("race check: no races found")
	case 1:
		w.say("race check: 1 race found")
	default:
		w.say(fmt.Sprintf("race check: %d races found", n))
	}
	if _, fatal, _ := w.cfg.checks(); fatal && n > 0 {
		races = fmt.Errorf("%w: %d, reported above", errRaces, n)
	}
	return races, nil
}

// checkStats adds what the race check has counted to out, which may be nil.
func (w *World) checkStats(out map[string]float64) map[string]float64 {
	if w.check == nil {
		return out
	}
	if out == nil {
		out = make(map[string]float64)
	}
	s := w.check.Stats()
	out["race.accesses"], out["race.elements"] = float64(s.Accesses), float64(s.Elements)
	out["race.found"], out["race.forgotten"] = float64(s.Races), float64(s.Lost)
	out["race.undeclared"] = float64(s.Seen)
	return out
}
