package dashboard

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// metricsType is the text format of Prometheus, version 0.0.4.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// family is a metric with its help and type, and where its values come from.
type family struct{ name, kind, help string }

// counter names one of a rank's further counters in Prometheus' way: base units, and _total for what only grows.
type counter struct {
	extra string // in control.Sample.Extra
	family
	labels string
}

// counters that a rank may have, those of one family together.
func counters() []counter {
	const (
		regs   = "Registrations of the rank's memory for its own transfers."
		misses = "Transfers whose memory was not registered yet, by what was missing."
		copies = "Large transfers that were copied because their memory could not be registered, by why."
		deregs = "Registrations given up."
		hoses  = "Requests for buckets of other ranks' memory, by what they met."
	)
	return []counter{
		{"heap.reserved", family{"pgas_heap_reserved_bytes", "gauge", "Memory that the rank's symmetric heap has taken from the machine."}, ""},
		{"heap.used", family{"pgas_heap_used_bytes", "gauge", "Memory in blocks of the rank's symmetric heap."}, ""},
		{"reg.bytes", family{"pgas_registered_bytes", "gauge", "Memory registered with the NIC now, charged to the rank's budget."}, ""},
		{"reg.peak", family{"pgas_registered_peak_bytes", "gauge", "The most memory that was registered at once for the rank's own transfers."}, ""},
		{"reg.registrations", family{"pgas_registrations_total", "counter", regs}, ""},
		{"reg.deregistrations", family{"pgas_deregistrations_total", "counter", deregs}, ""},
		{"reg.evicted", family{"pgas_registrations_evicted_total", "counter", "Registrations given up to make room for others."}, ""},
		{"reg.hits", family{"pgas_registration_hits_total", "counter", "Transfers whose memory was registered already."}, ""},
		{"reg.waits", family{"pgas_registration_waits_total", "counter", "Hits that waited for another caller's registration."}, ""},
		{"reg.refused", family{"pgas_registrations_refused_total", "counter", "Registrations that the NIC refused."}, ""},
		{"reg.miss.cold", family{"pgas_registration_misses_total", "counter", misses}, `cause="cold"`},
		{"reg.miss.partial", family{"pgas_registration_misses_total", "counter", misses}, `cause="partial"`},
		{"reg.miss.rights", family{"pgas_registration_misses_total", "counter", misses}, `cause="rights"`},
		{"reg.copied.budget", family{"pgas_copied_transfers_total", "counter", copies}, `cause="budget"`},
		{"reg.copied.origin", family{"pgas_copied_transfers_total", "counter", copies}, `cause="origin"`},
		{"reg.copied.policy", family{"pgas_copied_transfers_total", "counter", copies}, `cause="policy"`},
		{"reg.copied.refused", family{"pgas_copied_transfers_total", "counter", copies}, `cause="refused"`},
		{"firehose.hits", family{"pgas_firehose_requests_total", "counter", hoses}, `outcome="hit"`},
		{"firehose.misses", family{"pgas_firehose_requests_total", "counter", hoses}, `outcome="miss"`},
		{"firehose.refused", family{"pgas_firehose_requests_total", "counter", hoses}, `outcome="refused"`},
		{"firehose.moves", family{"pgas_firehose_moves_total", "counter", "Firehoses taken off one bucket for another."}, ""},
		{"firehose.served", family{"pgas_firehose_served_total", "counter", "Moves answered for other ranks."}, ""},
	}
}

// level says whether c is what a rank has now, which one that has ended has no more.
func (c counter) level() bool { return c.kind == "gauge" && c.extra != "reg.peak" }

// noFall returns what a rank says now with those of its counters that are less than what it said before, or missing, as they were: some are made
// of several that were not read at one moment, and who reads metrics takes a counter that falls for a process that began anew.
func noFall(before, now map[string]float64) map[string]float64 {
	for _, c := range counters() {
		v, known := before[c.extra]
		if !known || c.kind != "counter" || now[c.extra] >= v {
			continue
		}
		if now == nil {
			now = make(map[string]float64)
		}
		now[c.extra] = v
	}
	return now
}

// writer gathers a page of metrics: all values of a family stand together, under its help and type.
type writer struct {
	out  bytes.Buffer
	last string
}

func (w *writer) value(f family, labels string, v float64) {
	if f.name != w.last {
		fmt.Fprintf(&w.out, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		w.last = f.name
	}
	w.out.WriteString(f.name)
	if labels != "" {
		w.out.WriteString("{" + labels + "}")
	}
	w.out.WriteString(" " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
}

// label is name="value" with what the format wants escaped. One byte that is no UTF-8, as an argument of the program may hold, and Prometheus refuses the page.
func label(name, value string) string {
	value = strings.ToValidUTF8(value, "\uFFFD")
	return name + `="` + strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(value) + `"`
}

// metrics returns the job as Prometheus reads it.
func (b *Board) metrics() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	w := new(writer)
	w.value(family{"pgas_job_info", "gauge", "The job; its value is 1."}, label("program", b.job.Program), 1)
	w.value(family{"pgas_job_ranks", "gauge", "Ranks of the job."}, "", float64(len(b.ranks)))
	w.value(family{"pgas_job_running_seconds", "gauge", "Time since the job began."}, "", now.Sub(b.began).Seconds())
	each := func(f family, value func(r *rank) (float64, bool)) {
		for i := range b.ranks {
			if v, ok := value(&b.ranks[i]); ok {
				w.value(f, label("rank", strconv.Itoa(i)), v)
			}
		}
	}
	each(family{"pgas_rank_up", "gauge", "1 while the rank's process runs."}, func(r *rank) (float64, bool) {
		return one(r.ended == ""), true
	})
	each(family{"pgas_rank_sample_age_seconds", "gauge", "Time since the rank has answered."}, func(r *rank) (float64, bool) {
		return now.Sub(r.asked).Seconds(), !r.asked.IsZero()
	})
	each(family{"pgas_rank_waits", "gauge", "Calls of the rank that wait now."}, func(r *rank) (float64, bool) {
		return float64(len(r.last.Waits)), r.ended == ""
	})
	each(family{"pgas_rank_longest_wait_seconds", "gauge", "How long the oldest call that waits has waited, when the rank last answered."},
		func(r *rank) (float64, bool) {
			longest := 0.0
			for _, x := range r.last.Waits {
				longest = max(longest, x.Since.Seconds())
			}
			return longest, r.ended == ""
		})
	b.pathMetrics(w)
	b.flowMetrics(w)
	for _, c := range counters() {
		for i := range b.ranks {
			if b.ranks[i].ended != "" && c.level() {
				continue
			}
			if v, ok := b.ranks[i].last.Extra[c.extra]; ok {
				labels := label("rank", strconv.Itoa(i))
				if c.labels != "" {
					labels += "," + c.labels
				}
				w.value(c.family, labels, v)
			}
		}
	}
	return w.out.Bytes()
}

// pathMetrics are what each rank has moved, by transport and path.
func (b *Board) pathMetrics(w *writer) {
	for k, f := range []family{
		{"pgas_operations_total", "counter", "Operations that the rank has begun, by transport and path."},
		{"pgas_operation_bytes_total", "counter", "Payload of the rank's operations, by transport and path."},
		{"pgas_operation_waits_total", "counter", "Operations that had to wait, by transport and path."},
	} {
		for i := range b.ranks {
			transports := b.ranks[i].last.Transports
			for _, via := range slices.Sorted(maps.Keys(transports)) {
				for _, path := range slices.Sorted(maps.Keys(transports[via])) {
					p := transports[via][path]
					labels := label("rank", strconv.Itoa(i)) + "," + label("transport", via) + "," + label("path", path)
					w.value(f, labels, float64([...]uint64{p.Ops, p.Bytes, p.Waits}[k]))
				}
			}
		}
	}
}

// flowMetrics are the traffic matrix.
func (b *Board) flowMetrics(w *writer) {
	for k, f := range []family{
		{"pgas_flow_operations_total", "counter", "Operations of a rank on a target's memory."},
		{"pgas_flow_bytes_total", "counter", "Payload that a rank has moved to and from a target's memory."},
	} {
		for i := range b.ranks {
			flows := b.ranks[i].flows
			for _, c := range slices.SortedFunc(maps.Keys(flows), func(a, b channel) int {
				return cmp.Or(cmp.Compare(a.with, b.with), cmp.Compare(a.via, b.via))
			}) {
				labels := label("rank", strconv.Itoa(i)) + "," + label("target", strconv.Itoa(c.with)) + "," + label("transport", c.via)
				w.value(f, labels, float64([...]uint64{flows[c].Ops, flows[c].Bytes}[k]))
			}
		}
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
