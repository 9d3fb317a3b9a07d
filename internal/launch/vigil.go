package launch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gopgas/internal/control"
	"gopgas/internal/crew"
)

// DefaultWarnAfter is longer than calls wait for each other in programs whose work is divided well.
const DefaultWarnAfter = 10 * time.Second

// vigil decides when a job is to be looked at, and whether it stands still. It is pure. While any rank computes, none is asked anything: what
// they use of the CPU, which the system knows, shows that. Where all are idle, they are asked what they wait for.
type vigil struct {
	every  time.Duration
	used   map[int]time.Duration // by rank: of the CPU, when it was last looked at
	pause  int                   // how many times more not to look, since somebody did not answer: programs that are not of this library never do
	missed int                   // the last pause
	asking bool
	told   bool
}

// Limits of the vigil.
const (
	longestPause = 64 // times
	mostGroups   = 4  // of ranks that wait for the same, in the line
)

// idle takes what each rank that runs has used of the CPU, and says whether they are to be asked: none has computed since the last time. The
// answers go to judge.
func (v *vigil) idle(used map[int]time.Duration) bool {
	before := v.used
	v.used = used
	if v.told || v.asking || len(used) == 0 {
		return false
	}
	if v.pause > 0 {
		v.pause--
		return false
	}
	for r, now := range used {
		if old, ok := before[r]; !ok || now-old > v.every/10 { // a wait takes a hundredth, to look for the end of others
			return false
		}
	}
	v.asking = true
	return true
}

// judge takes the answers and returns the warning, once: when all ranks that run have waited for that long.
func (v *vigil) judge(all []suspect) (line string, ok bool) {
	v.asking = false
	if v.told {
		return "", false
	}
	var groups []string
	members := map[string][]int{}
	for _, s := range all {
		if s.ended != "" {
			continue
		}
		if !s.answered {
			v.missed = min(2*v.missed+1, longestPause)
			v.pause = v.missed
			return "", false
		}
		w, ok := longest(s.waits)
		if !ok || w.Since < v.every {
			return "", false
		}
		cells := waitCells(w)
		what := cells[0] + " for " + cells[1]
		if cells[3] != "" {
			what += " at " + cells[3]
		}
		if members[what] == nil {
			groups = append(groups, what)
		}
		members[what] = append(members[what], s.rank)
	}
	if len(groups) == 0 {
		return "", false
	}
	v.told = true
	var b strings.Builder
	fmt.Fprintf(&b, "all ranks have waited for %s: ", v.every)
	for i, what := range groups {
		if i == mostGroups {
			fmt.Fprintf(&b, "; and %d more", len(groups)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		noun := "rank "
		if len(members[what]) > 1 {
			noun = "ranks "
		}
		b.WriteString(noun + crew.FormatList(members[what]) + " in " + what)
	}
	return b.String(), true
}

// longest is the wait that has lasted longest.
func longest(waits []control.Wait) (control.Wait, bool) {
	if len(waits) == 0 {
		return control.Wait{}, false
	}
	return slices.MaxFunc(waits, func(a, b control.Wait) int { return int(a.Since - b.Since) }), true
}
