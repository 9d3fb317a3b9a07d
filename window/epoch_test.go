package window

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var updateGolden = flag.Bool("update", false, "write the golden files anew")

// event is a call, and when it is allowed, written down once more: by what is open.
type event struct {
	name    string
	call    func(epoch) (epoch, error)
	allowed func(s epoch) bool
}

func events() []event {
	quiet := func(s epoch) bool { return s.access == noAccess || s.access == fenced }
	fence := func(s epoch) bool { return (quiet(s) || s.access == moved) && !s.exposed }
	var out []event
	add := func(name string, call func(epoch) (epoch, error), allowed func(epoch) bool) {
		out = append(out, event{name, call, allowed})
	}
	add("fence", epoch.fence, fence)
	add("fence-end", epoch.fenceEnd, fence)
	for _, g := range [][]int{{0}, {1, 0}} {
		add(fmt.Sprint("start ", g), func(s epoch) (epoch, error) { return s.start(g) }, quiet)
	}
	add("complete", epoch.complete, func(s epoch) bool { return s.access == started })
	add("post [1]", func(s epoch) (epoch, error) { return s.post([]int{1}) }, func(s epoch) bool { return !s.exposed && s.access != moved })
	add("wait", epoch.wait, func(s epoch) bool { return s.exposed })
	for t := range 2 {
		add(fmt.Sprint("lock ", t), func(s epoch) (epoch, error) { return s.lock(t) },
			func(s epoch) bool { return quiet(s) || s.access == locked && !slices.Contains(s.targets, t) })
		add(fmt.Sprint("unlock ", t), func(s epoch) (epoch, error) { return s.unlock(t) },
			func(s epoch) bool { return s.access == locked && slices.Contains(s.targets, t) })
		add(fmt.Sprint("access ", t), func(s epoch) (epoch, error) { return s.reach(t) }, func(s epoch) bool {
			return s.access == fenced || s.access == moved || s.access == lockedAll || slices.Contains(s.targets, t)
		})
	}
	add("lock-all", epoch.lockAll, quiet)
	add("unlock-all", epoch.unlockAll, func(s epoch) bool { return s.access == lockedAll })
	add("free", epoch.free, fence)
	return out
}

// TestEpochs walks all states that can be reached with two members, and compares every transition with the golden table
// and with the rules above.
func TestEpochs(t *testing.T) {
	var table strings.Builder
	states := []epoch{{}}
	known := map[string]bool{states[0].String(): true}
	for i := 0; i < len(states); i++ {
		s := states[i]
		fmt.Fprintf(&table, "%s\n", s)
		before := s.String()
		for _, e := range events() {
			next, err := e.call(s)
			require.Equal(t, before, s.String(), "%s changed its argument", e.name)
			require.Equal(t, e.allowed(s), err == nil, "%s in %s: %v", e.name, s, err)
			if err != nil {
				require.ErrorIs(t, err, ErrEpoch)
				require.Equal(t, s, next, "an error changes nothing")
				fmt.Fprintf(&table, "\t%s: %v\n", e.name, err)
				continue
			}
			fmt.Fprintf(&table, "\t%s → %s\n", e.name, next)
			if !known[next.String()] {
				known[next.String()] = true
				states = append(states, next)
			}
		}
	}
	const golden = "testdata/epochs.golden"
	if *updateGolden {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(table.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), table.String())
}

// TestLockWords lets members take and release a lock in every order and compares with a list of holders.
func TestLockWords(t *testing.T) {
	type holders struct {
		shared, waiting int
		exclusive       int // -1: nobody
	}
	type state struct {
		word lockWord
		want holders
	}
	const members = 3
	seen := map[state]bool{}
	var walk func(s state)
	walk = func(s state) {
		if seen[s] {
			return
		}
		seen[s] = true
		require.Equal(t, s.want, holders{s.word.shared(), s.word.waiting(), s.word.holder()})
		free := s.want.exclusive < 0
		for me := range members {
			next, ok := s.word.take(LockShared, me, false)
			require.Equal(t, free && s.want.waiting == 0, ok, "%+v", s.want)
			if ok && s.want.shared < members {
				walk(state{next, holders{s.want.shared + 1, s.want.waiting, -1}})
			}
			next, ok = s.word.take(LockExclusive, me, false)
			require.Equal(t, free && s.want.shared == 0 && s.want.waiting == 0, ok)
			if ok {
				walk(state{next, holders{0, 0, me}})
			}
			if s.want.waiting > 0 {
				next, ok = s.word.take(LockExclusive, me, true)
				require.Equal(t, free && s.want.shared == 0, ok)
				if ok {
					walk(state{next, holders{0, s.want.waiting - 1, me}})
				}
			}
			if s.want.exclusive == me {
				walk(state{s.word + lockWord(LockExclusive.release(me)), holders{0, s.want.waiting, -1}})
			}
		}
		if s.want.waiting < members {
			walk(state{s.word + oneWaiting, holders{s.want.shared, s.want.waiting + 1, s.want.exclusive}})
		}
		if s.want.shared > 0 {
			walk(state{s.word + lockWord(LockShared.release(0)), holders{s.want.shared - 1, s.want.waiting, s.want.exclusive}})
		}
	}
	walk(state{0, holders{0, 0, -1}})
	require.Greater(t, len(seen), 20)
	last, ok := lockWord(0).take(LockExclusive, mostMembers-2, false) // the last member that a window with epochs can have
	require.True(t, ok)
	require.Equal(t, mostMembers-2, last.holder())
	require.Zero(t, last+lockWord(LockExclusive.release(mostMembers-2)))
}
