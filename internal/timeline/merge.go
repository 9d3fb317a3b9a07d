package timeline

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Source is a rank's file.
type Source struct {
	Open func() (io.ReadCloser, error) // an error that wraps fs.ErrNotExist: there is no such file
	Here func(there int64) int64       // from the clock of the rank's node to that of the picture, in nanoseconds; nil: it is the same
}

// at returns a time of the rank's clock by that of the picture.
func (s *Source) at(h Head, t int64) int64 {
	if s.Here == nil {
		return h.Zero + t
	}
	return s.Here(h.Zero + t)
}

// Summary tells what a merged file holds.
type Summary struct {
	Ranks, Spans int
	Lost         uint64
}

// event is one of the Trace Event Format.
type event struct {
	Name string   `json:"name"`
	Ph   string   `json:"ph"`
	Cat  string   `json:"cat,omitempty"`
	PID  int      `json:"pid"`
	TID  int      `json:"tid"`
	TS   *micros  `json:"ts,omitempty"`
	Dur  *micros  `json:"dur,omitempty"`
	S    string   `json:"s,omitempty"` // scope of an instant
	Args *details `json:"args,omitempty"`
}

type details struct {
	Name   string `json:"name,omitempty"`
	Sort   *int   `json:"sort_index,omitempty"`
	With   *int   `json:"rank,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Where  string `json:"at,omitempty"`
	Lost   uint64 `json:"lost,omitempty"`
	Number int    `json:"process,omitempty"`
}

// micros is nanoseconds, written as microseconds with three digits: a float64 would lose them after some days.
type micros int64

// MarshalJSON implements json.Marshaler.
func (m micros) MarshalJSON() ([]byte, error) {
	b := strconv.AppendInt(nil, int64(m)/1000, 10)
	return fmt.Appendf(b, ".%03d", int64(m)%1000), nil
}

// Merge writes the ranks' files as one for Perfetto. A source that cannot be opened or read is left out: its rank may have
// died before it wrote. The error is that of out, or of the first source where none could be read.
func Merge(out io.Writer, sources []Source) (Summary, error) {
	w := &merger{out: bufio.NewWriterSize(out, 256<<10)}
	zero, first := int64(0), error(nil)
	readable := make([]bool, len(sources))
	for i, s := range sources { // the earliest rank's zero is that of all
		if h, err := headOf(s); err != nil {
			first = cmp.Or(first, err)
		} else if w.sum.Ranks++; w.sum.Ranks == 1 || s.at(h, 0) < zero {
			readable[i], zero = true, s.at(h, 0)
		} else {
			readable[i] = true
		}
	}
	if w.sum.Ranks == 0 && first != nil {
		return w.sum, first
	}
	w.text(`{"displayTimeUnit":"ns","traceEvents":[`)
	for i, s := range sources {
		if !readable[i] {
			continue
		}
		f, err := s.Open()
		if err != nil {
			return w.sum, err
		}
		h, rows, lost, _ := read(f) // what can be read is shown
		_ = f.Close()
		for i, r := range rows {
			begin := s.at(h, r.At)
			rows[i].At, rows[i].Took = begin-zero, max(min(r.Took, 1), s.at(h, r.At+r.Took)-begin)
		}
		w.rank(h, rows, lost)
	}
	w.text("\n]}\n")
	if err := w.out.Flush(); err != nil && w.err == nil {
		w.err = err
	}
	return w.sum, w.err
}

func headOf(s Source) (h Head, err error) {
	f, err := s.Open()
	if err != nil {
		return h, err
	}
	defer f.Close()
	if err := json.NewDecoder(f).Decode(&h); err != nil {
		return h, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return h, nil
}

// merger writes events, with commas between them.
type merger struct {
	out  *bufio.Writer
	sum  Summary
	some bool
	err  error
}

func (w *merger) text(s string) {
	if _, err := w.out.WriteString(s); w.err == nil {
		w.err = err
	}
}

func (w *merger) event(e event) {
	b, err := json.Marshal(e)
	if err != nil {
		w.err = cmp.Or(w.err, err)
		return
	}
	if w.some {
		w.text(",")
	}
	w.some = true
	w.text("\n" + string(b))
}

// rank writes one rank's process.
func (w *merger) rank(h Head, rows []Row, lost uint64) {
	name := "rank " + strconv.Itoa(h.Rank)
	if h.Node != "" {
		name += " on " + h.Node
	}
	if lost > 0 {
		name += fmt.Sprintf(" (%d spans lost)", lost)
	}
	w.event(event{Name: "process_name", Ph: "M", PID: h.Rank, Args: &details{Name: name, Number: h.PID, Lost: lost}})
	w.event(event{Name: "process_sort_index", Ph: "M", PID: h.Rank, Args: &details{Sort: &h.Rank}})
	lanes := lanesOf(rows)
	seen := make(map[int]bool)
	for i, r := range rows {
		tid := lanes[i]
		if !seen[tid] {
			seen[tid] = true
			w.event(event{Name: "thread_name", Ph: "M", PID: h.Rank, TID: tid, Args: &details{Name: laneName(tid)}})
			w.event(event{Name: "thread_sort_index", Ph: "M", PID: h.Rank, TID: tid, Args: &details{Sort: &tid}})
		}
		at, took := micros(r.At), micros(r.Took)
		e := event{Name: r.Op, Cat: r.Kind.String(), PID: h.Rank, TID: tid, TS: &at, Args: &details{Bytes: r.Bytes, Where: r.Where}}
		if r.Peer >= 0 {
			e.Args.With = &r.Peer
		}
		if e.Ph, e.Dur = "X", &took; took == 0 {
			e.Ph, e.Dur, e.S = "i", nil, "t"
		}
		w.event(e)
	}
	w.sum.Spans += len(rows)
	w.sum.Lost += lost
}

// lanesPerKind bounds the lanes of a kind; what finds none free begins another rank's worth beyond it.
const lanesPerKind = 1000

// lanesOf gives each row a lane: kinds apart, and the first lane of its kind that is free before the row's begin (L3): spans that touch would overlap by a
// nanosecond where a reader cuts times off, as Perfetto does with begins and lengths each. It sorts the rows by their begin.
func lanesOf(rows []Row) []int {
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(b.Took, a.Took)) // of two the longer first
	})
	var free [kinds][]int64 // by lane: when its last span ends
	out := make([]int, len(rows))
	for i, r := range rows {
		lanes := free[r.Kind]
		lane := slices.IndexFunc(lanes, func(end int64) bool { return end < r.At })
		if lane < 0 && len(lanes) < lanesPerKind {
			lane = len(lanes)
			free[r.Kind] = append(lanes, 0)
		}
		if lane < 0 { // a program of a thousand goroutines that wait: the one that is free soonest
			lane = slices.Index(lanes, slices.Min(lanes))
		}
		free[r.Kind][lane] = max(free[r.Kind][lane], r.At+r.Took)
		out[i] = 1 + int(r.Kind)*lanesPerKind + lane
	}
	return out
}

// laneName is what stands beside a lane.
func laneName(tid int) string {
	kind, lane := Kind((tid-1)/lanesPerKind), (tid-1)%lanesPerKind
	name := kind.String() + "s"
	if lane > 0 {
		name += " " + strconv.Itoa(lane+1)
	}
	return name
}
