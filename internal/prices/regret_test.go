package prices

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/selector"
)

// TestRegret plays ten thousand equal transfers in virtual time, as the engine does, and compares their time with that of the protocol that is
// really the cheapest: what trials cost is at most 2 % of it, however many puts are flushed together, and less of more.
func TestRegret(t *testing.T) {
	const count = 10_000
	rng, machines := rand.New(rand.NewPCG(5, 6)), 40
	if testing.Short() {
		machines = 8
	}
	for _, c := range []struct {
		name string
		q    selector.Query
		run  int // puts before a flush; 0: gets
	}{
		{"gets", selector.Query{Bytes: 256 * kib, Get: true, Waited: true, Covered: true}, 0},
		{"puts and flushes", selector.Query{Bytes: 256 * kib, Waited: true, Covered: true}, 1},
		{"an exchange of 16 KiB", selector.Query{Bytes: 16 * kib, Covered: true}, 512},
		{"few puts, then a flush", selector.Query{Bytes: 100 * kib, Covered: true}, 8},
		{"memory that is new each time", selector.Query{Bytes: 256 * kib, Waited: true, Uses: 1}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			worst := 0.0
			for range machines {
				p := Published(testMachine())
				truth, best := map[selector.Protocol]float64{}, 1.0
				for _, e := range p.Estimates(c.q) { // what the model says, or up to three times that, or half of it
					truth[e.Protocol] = p.Selector.Lasting(e.Protocol, c.q) * (0.5 + 2.5*rng.Float64())
				}
				for _, way := range waysOf(c.q) {
					best = min(best, truth[way])
				}
				if direct := truth[selector.Direct]; c.q.Covered && c.q.Waited && direct <= 1.05*best {
					best = direct // which copies nothing
				}
				first := playTransfers(p, c.q, c.run, count/10, truth)
				regret := (first+playTransfers(p, c.q, c.run, count-count/10, truth))/(count*best) - 1
				worst = max(worst, regret)
				later := playTransfers(p, c.q, c.run, 4*count, truth)/(4*count*best) - 1
				require.Less(t, later, 0.007, "%v", truth)
			}
			require.Less(t, worst, 0.02)
			t.Logf("at most %.2f %%", 100*worst)
		})
	}
}

// waysOf are the protocols that a query may be tried with on a machine without a core for a hybrid's helper.
func waysOf(q selector.Query) []selector.Protocol {
	if q.Covered {
		return []selector.Protocol{selector.Direct, selector.Bounce, selector.Pipe}
	}
	return []selector.Protocol{selector.Register, selector.Bounce, selector.Pipe}
}

// playTransfers makes so many transfers, a flush behind each run of puts, and returns the seconds that they take. A flush takes no time of its own.
func playTransfers(p *Prices, q selector.Query, run, count int, truth map[selector.Protocol]float64) (total float64) {
	var h Habits
	h.Begin(nil)
	l := p.Learned(Far)
	pass := func(seconds float64) time.Duration {
		total += seconds
		return time.Duration(seconds * 1e9)
	}
	for i := range count {
		var last Run
		if run > 0 {
			_, _, last = h.FlushFollows(7, 32<<10)
		}
		way, trial, again := last.Again(l, 1, q)
		if !again {
			way, trial = l.Choose(q, p.Selector, true)
		}
		took := pass(truth[way])
		if run == 0 {
			l.Note(trial, took.Seconds())
			continue
		}
		if tried := h.Put(l, trial, 1, took); tried.Wanted() {
			tried.Flushed(0)
		}
		if (i+1)%run == 0 {
			if r := h.Flush(1); r.Wanted() {
				r.Flushed(0)
			}
		}
	}
	return total
}
