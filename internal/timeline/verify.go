package timeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// anyEvent is an event of any file of the Trace Event Format, with what must be told apart from what is missing.
type anyEvent struct {
	Name *string                    `json:"name"`
	Ph   *string                    `json:"ph"`
	Cat  string                     `json:"cat"`
	PID  *int                       `json:"pid"`
	TID  *int                       `json:"tid"`
	TS   *float64                   `json:"ts"`
	Dur  *float64                   `json:"dur"`
	S    string                     `json:"s"`
	ID   json.RawMessage            `json:"id"`
	BP   string                     `json:"bp"`
	Args map[string]json.RawMessage `json:"args"`
}

// lane is a row of the picture.
type lane struct{ pid, tid int }

// verifier is a file while it is read.
type verifier struct {
	named  map[lane]bool       // threads that have a name
	known  map[int]bool        // processes that have one
	used   map[lane]int        // the first event of each lane
	open   map[lane][]string   // begun and not ended, innermost last
	spans  map[lane][]anyEvent // complete ones
	flows  map[string]float64  // begun, by what binds them: when
	counts Counts
}

// Counts says what a file holds.
type Counts struct{ Spans, Instants, Flows, Processes, Lanes int }

// Verify reads a merged file by the rules of "Trace Event Format" (Google, 2016), section by section, as strictly as a reader may
// be: unknown fields and phases are errors. Events have a name, a phase, a process, a thread and, if they are no metadata, a
// time that is not negative; complete ones a duration; instants a scope; begin and end events nest, flows end where they have
// begun, not before; names and orders are given as that document says, and every process and lane that is used has a name.
// Complete events of a lane nest or follow each other, with times cut off as Perfetto does; and a lane is named before anything else of it, since Perfetto gives a
// name to the last process that has used the lane's number. It is what tests ask, and holds the file in memory.
func Verify(r io.Reader) (Counts, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var doc struct {
		Unit   string     `json:"displayTimeUnit"`
		Events []anyEvent `json:"traceEvents"`
	}
	if err := d.Decode(&doc); err != nil {
		return Counts{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Counts{}, fmt.Errorf("%w: there is something behind the end", ErrFormat)
	}
	if doc.Unit != "ns" && doc.Unit != "ms" {
		return Counts{}, fmt.Errorf("%w: displayTimeUnit %q: there are ns and ms", ErrFormat, doc.Unit)
	}
	if doc.Events == nil {
		return Counts{}, fmt.Errorf("%w: no traceEvents", ErrFormat)
	}
	v := verifier{
		named: map[lane]bool{}, known: map[int]bool{}, used: map[lane]int{}, open: map[lane][]string{}, spans: map[lane][]anyEvent{},
		flows: map[string]float64{},
	}
	for i, e := range doc.Events {
		if err := v.event(i, e); err != nil {
			return Counts{}, fmt.Errorf("%w: event %d: %w", ErrFormat, i, err)
		}
	}
	if err := v.end(); err != nil {
		return Counts{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	v.counts.Processes, v.counts.Lanes = len(v.known), len(v.used)
	return v.counts, nil
}

func (v *verifier) event(i int, e anyEvent) error {
	switch {
	case e.Name == nil || *e.Name == "":
		return errors.New("no name")
	case e.Ph == nil:
		return errors.New("no ph")
	case e.PID == nil || e.TID == nil:
		return errors.New("no pid or no tid")
	case *e.Ph == "M":
		return v.metadata(e)
	case e.TS == nil || *e.TS < 0:
		return errors.New("no ts, or one before the beginning")
	}
	at := lane{*e.PID, *e.TID}
	if _, ok := v.used[at]; !ok {
		v.used[at] = i
	}
	switch *e.Ph {
	case "X":
		if e.Dur == nil || *e.Dur < 0 {
			return errors.New("a complete event has a dur, not below 0")
		}
		v.spans[at] = append(v.spans[at], e)
		v.counts.Spans++
	case "i":
		if !slices.Contains([]string{"g", "p", "t"}, e.S) {
			return fmt.Errorf("an instant of scope %q: there are g, p and t", e.S)
		}
		v.counts.Instants++
	case "B":
		v.open[at] = append(v.open[at], *e.Name)
		v.counts.Spans++
	case "E":
		begun := v.open[at]
		if len(begun) == 0 || begun[len(begun)-1] != *e.Name {
			return fmt.Errorf("%q ends, and what has begun last in its lane are %q", *e.Name, begun)
		}
		v.open[at] = begun[:len(begun)-1]
	case "s", "t", "f":
		return v.flow(e)
	default:
		return fmt.Errorf("ph %q is none that is written", *e.Ph)
	}
	return nil
}

// flow verifies an arrow's beginning, step or end. They are bound by category, name and id.
func (v *verifier) flow(e anyEvent) error {
	if len(e.ID) == 0 || e.Cat == "" {
		return errors.New("a flow without id or cat")
	}
	key := e.Cat + "\x00" + *e.Name + "\x00" + string(e.ID)
	begun, ok := v.flows[key]
	switch {
	case *e.Ph == "s" && ok:
		return fmt.Errorf("flow %s has begun twice", e.ID)
	case *e.Ph == "s":
		v.flows[key] = *e.TS
		v.counts.Flows++
		return nil
	case !ok:
		return fmt.Errorf("flow %s has not begun", e.ID)
	case *e.TS < begun:
		return fmt.Errorf("flow %s goes back in time", e.ID)
	case *e.Ph == "f":
		if e.BP != "" && e.BP != "e" {
			return fmt.Errorf("bp %q: there is e", e.BP)
		}
		delete(v.flows, key)
	}
	return nil
}

// metadata verifies names and orders.
func (v *verifier) metadata(e anyEvent) error {
	var name string
	var order int
	switch *e.Name {
	case "process_name", "thread_name":
		if err := json.Unmarshal(e.Args["name"], &name); err != nil || name == "" {
			return fmt.Errorf("%s without args.name", *e.Name)
		}
		if *e.Name == "process_name" {
			v.known[*e.PID] = true
		} else if _, ok := v.used[lane{*e.PID, *e.TID}]; ok {
			return errors.New("the lane is named behind events of it")
		} else {
			v.named[lane{*e.PID, *e.TID}] = true
		}
	case "process_sort_index", "thread_sort_index":
		if err := json.Unmarshal(e.Args["sort_index"], &order); err != nil {
			return fmt.Errorf("%s without args.sort_index, a whole number", *e.Name)
		}
	default:
		return fmt.Errorf("metadata %q is none that is written", *e.Name)
	}
	return nil
}

// nanos is a time as Perfetto reads it: a float64 of microseconds, times 1000, cut off. (Its importer: json_utils, CoerceToTs.)
func nanos(micros float64) int64 { return int64(micros * 1000) }

// end verifies what can be told of a whole file only.
func (v *verifier) end() error {
	if len(v.flows) > 0 {
		return fmt.Errorf("%d flows do not end", len(v.flows))
	}
	for at, i := range v.used {
		switch {
		case !v.known[at.pid] || !v.named[at]:
			return fmt.Errorf("process %d or its lane %d has no name, and event %d uses it", at.pid, at.tid, i)
		case len(v.open[at]) > 0:
			return fmt.Errorf("%q of process %d, lane %d do not end", v.open[at], at.pid, at.tid)
		}
		spans := v.spans[at]
		slices.SortStableFunc(spans, func(a, b anyEvent) int {
			if d := *a.TS - *b.TS; d != 0 {
				return sign(d)
			}
			return sign(*b.Dur - *a.Dur)
		})
		var ends []int64 // of those that are open, innermost last
		for _, e := range spans {
			for len(ends) > 0 && ends[len(ends)-1] <= nanos(*e.TS) {
				ends = ends[:len(ends)-1]
			}
			end := nanos(*e.TS) + nanos(*e.Dur)
			if len(ends) > 0 && end > ends[len(ends)-1] {
				return fmt.Errorf("%q of process %d, lane %d, at %.3f reaches beyond what it began in", *e.Name, at.pid, at.tid, *e.TS)
			}
			ends = append(ends, end)
		}
	}
	return nil
}

func sign(f float64) int {
	switch {
	case f < 0:
		return -1
	case f > 0:
		return 1
	}
	return 0
}
