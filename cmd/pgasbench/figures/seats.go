package figures

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gopgas/internal/paired"
	"gopgas/internal/plot"
)

const (
	seatCores  = 2 // that the ranks are given
	seatRounds = 6 // of a repeat: the fewest pairs that have a 95 % interval
)

// seatPolicies are what the ranks are told of idle cores. The first is what the others are compared with, the last its control; always asks for
// a helper whatever the cores.
func seatPolicies() []string {
	return []string{"none", "conservative", "aggressive", "auto", "always", "none again"}
}

// seatJobs are the numbers of ranks: one that leaves a core idle, and more than there are cores.
func seatJobs() []int { return []int{1, 2 * seatCores} }

// seatRun is one policy's reports, by round and rank.
type seatRun [][]*SeatReport

// idleSeats has busy ranks, processes of their own, on two cores under each policy for idle ones.
func idleSeats(ctx context.Context, o *Options) (*Result, error) {
	if o.Ranks == nil {
		return nil, errors.New("it is made of ranks that are processes, and there is nobody to start them")
	}
	work := SeatWork{Bytes: cmp.Or(o.Bytes, 4<<20), Iterations: cmp.Or(o.Iterations, 12), Compute: cmp.Or(o.Compute, 20*time.Millisecond)}
	res := &Result{
		Kind: fmt.Sprintf("measured on the %s NIC of this machine, ranks that are processes, on %d cores", o.Transport, seatCores),
		Columns: []string{
			"ranks", "idle_cores", "helpers_min", "helpers_max", "peak_bytes", "average_bytes", "posted_bytes", "hits", "misses", "predictions", "call_us", "call_us_min", "call_us_max",
			"longer_percent_paired", "longer_percent_low", "longer_percent_high",
		},
		Notes: []string{
			fmt.Sprintf("each rank: %d iterations of %d calls of put and flush, %d bytes to the next rank, and %v of computing after each; calls after iteration %d",
				work.Iterations, buffers, work.Bytes, work.Compute, learning),
			fmt.Sprintf("PGAS_REG=predictive; idle_cores is PGAS_IDLE_CORES; policies by turns, each in a job of its own, %d rounds; bytes are the sums over the ranks, medians of the rounds", seatRounds*o.Reps),
			"helpers: ranks that had one at the end of a call, fewest and most of all rounds; posted_bytes: what the ranks had told each other in node-shared memory at the end, as rank 0 read it",
			"longer_percent: a round's median call against that under none in the same round: median, and the ends of its 95 % interval (order statistics); a difference within the interval of none again is a tie",
		},
	}
	memory := plot.Chart{Title: "registered bytes, average over the run", X: plot.Axis{Names: seatPolicies()}, Y: plot.Axis{Label: "bytes", Zero: true, Bytes: true}, Bars: true}
	calls := plot.Chart{Title: "median call against no helper", X: plot.Axis{Names: seatPolicies()}, Y: plot.Axis{Label: "% longer"}, Bars: true}
	for _, ranks := range seatJobs() {
		runs, err := work.measure(ctx, o, ranks)
		if err != nil {
			return nil, fmt.Errorf("%d ranks: %w", ranks, err)
		}
		name := fmt.Sprintf("%d busy on %d cores", ranks, seatCores)
		bytes, longer := plot.Series{Name: name}, plot.Series{Name: name}
		for i, policy := range seatPolicies() {
			row, average, more := seatRow(ranks, policy, runs[i], runs[0])
			res.Rows = append(res.Rows, row)
			bytes.Points = append(bytes.Points, plot.Point{X: float64(i), Y: average})
			longer.Points = append(longer.Points, plot.Point{X: float64(i), Y: more.Median, Low: more.Low, High: more.High})
		}
		memory.Series, calls.Series = append(memory.Series, bytes), append(calls.Series, longer)
	}
	res.Charts = []Chart{{"memory", memory}, {"time", calls}}
	return res, nil
}

// measure runs all policies by turns and returns them in the order of seatPolicies.
func (s SeatWork) measure(ctx context.Context, o *Options, ranks int) ([]seatRun, error) {
	policies := seatPolicies()
	runs := make([]seatRun, len(policies))
	for round := range seatRounds * o.Reps {
		o.say("%d ranks, round %d of %d", ranks, round+1, seatRounds*o.Reps)
		for k := range policies {
			i := (k + round) % len(policies)
			policy := policies[i]
			if i == len(policies)-1 {
				policy = policies[0]
			}
			reports, err := s.job(ctx, o, ranks, policy)
			if err != nil {
				return nil, fmt.Errorf("idle cores %s: %w", policy, err)
			}
			runs[i] = append(runs[i], reports)
		}
	}
	return runs, nil
}

// job starts the ranks once and reads what they report.
func (s SeatWork) job(ctx context.Context, o *Options, ranks int, policy string) (all []*SeatReport, err error) {
	dir, err := os.MkdirTemp("", "seats")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	settings := []string{
		"PGAS_TRANSPORT=" + o.Transport, "PGAS_LOCAL=" + seatsLocal(ranks), "PGAS_BULK=register", "PGAS_REG=predictive", "PGAS_IDLE_CORES=" + policy,
		fmt.Sprintf("PGAS_MAX_PINNED=%d", int64(s.Bytes)*(buffers+2)+headroom),
	}
	err = o.Ranks(ctx, ranks, seatCores, settings, "seat", "--bytes", fmt.Sprint(s.Bytes), "--iterations", fmt.Sprint(s.Iterations),
		"--compute", s.Compute.String(), "--to", dir)
	if err != nil {
		return nil, err
	}
	for r := range ranks {
		text, err := os.ReadFile(SeatFile(dir, r))
		if err != nil {
			return nil, fmt.Errorf("what rank %d reports: %w", r, err)
		}
		var report SeatReport
		if err := json.Unmarshal(text, &report); err != nil {
			return nil, fmt.Errorf("what rank %d reports: %w", r, err)
		}
		all = append(all, &report)
	}
	return all, nil
}

// seatsLocal is PGAS_LOCAL for so many ranks: memory of their node is where they post, but a rank alone would put to itself there.
func seatsLocal(ranks int) string {
	if ranks == 1 {
		return "off"
	}
	return "on"
}

// SeatFile is where a rank of the figure seats leaves its report.
func SeatFile(dir string, rank int) string {
	return filepath.Join(dir, fmt.Sprintf("rank%d.json", rank))
}

// seatRow is a policy's line, and of it what the charts show.
func seatRow(ranks int, policy string, run, none seatRun) (row []any, average float64, longer paired.Interval) {
	var peaks, averages, posted, hits, misses, predictions, medians, helpers []float64
	var calls []float64
	for _, round := range run {
		t := sumSeats(round)
		peaks, averages, posted = append(peaks, t.peak), append(averages, t.average), append(posted, t.posted)
		hits, misses, predictions = append(hits, t.hits), append(misses, t.misses), append(predictions, t.predictions)
		medians, helpers = append(medians, spreadOf(t.calls).median), append(helpers, t.helpers)
		calls = append(calls, t.calls...)
	}
	var base []float64
	for _, round := range none {
		base = append(base, spreadOf(sumSeats(round).calls).median)
	}
	middle := func(v []float64) float64 { return spreadOf(v).median }
	longer = paired.Quotient(base, medians).Percent()
	c := spreadOf(calls)
	return []any{
		ranks, policy, int(slices.Min(helpers)), int(slices.Max(helpers)), int64(middle(peaks)), middle(averages), int64(middle(posted)),
		middle(hits), middle(misses), middle(predictions), c.median, c.least, c.most, longer.Median, longer.Low, longer.High,
	}, middle(averages), longer
}

// seatSums are what the ranks of a round have together.
type seatSums struct {
	helpers, peak, average, posted, hits, misses, predictions float64
	calls                                                     []float64
}

func sumSeats(round []*SeatReport) (t seatSums) {
	for _, r := range round {
		if r.Seated > 0 {
			t.helpers++
		}
		t.peak, t.average = t.peak+float64(r.Peak), t.average+r.Average
		t.hits, t.misses, t.predictions = t.hits+float64(r.Hits), t.misses+float64(r.Misses), t.predictions+float64(r.Predicted)
		t.calls = append(t.calls, r.Calls...)
	}
	for _, p := range round[0].Posted {
		t.posted += float64(p)
	}
	return t
}
