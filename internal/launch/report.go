package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gopgas/internal/control"
)

// answerTime is how long a rank may take to say what it waits for.
const answerTime = time.Second

// suspect is one rank in a hang report.
type suspect struct {
	rank, pid int
	host      string
	ended     string         // how and when it ended; empty: it runs
	waits     []control.Wait // what it says it waits for
	answered  bool
	seen      string // what the system shows of a rank that told of no wait
	stacks    bool   // it is one that can print its stacks
}

// quiet says whether the rank runs and told of no wait.
func (s *suspect) quiet() bool { return s.ended == "" && len(s.waits) == 0 }

// hangReport prints the table. A rank that waits in several calls has a row for each. Rows that say something else in words
// do not widen the columns.
func hangReport(why string, after time.Duration, all []suspect) string {
	several := slices.ContainsFunc(all, func(s suspect) bool { return s.host != all[0].host })
	number := "pid"
	if several {
		number = "pid on host"
	}
	rows := [][]string{{"rank", number, "state", "waits in", "for", "since", "called at"}}
	running := 0
	for _, s := range all {
		id, state := []string{strconv.Itoa(s.rank), strconv.Itoa(s.pid)}, "running"
		if several {
			id[1] += " on " + s.host
		}
		if s.ended == "" {
			running++
		} else {
			state = "ended"
		}
		id = append(id, state)
		switch {
		case s.ended != "":
			rows = append(rows, append(id, s.ended))
		case !s.answered:
			rows = append(rows, append(id, "no answer: "+s.seen))
		case len(s.waits) == 0:
			rows = append(rows, append(id, "nothing: it computes, or waits outside of the library"))
		}
		for _, w := range s.waits {
			rows = append(rows, append(id, waitCells(w)...))
			id = []string{"", "", ""}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "pgasrun: hang report after %s (%s): %d of %d ranks run\n", seconds(after), why, running, len(all))
	writeRows(&b, rows)
	return b.String()
}

// waitCells are the last four cells of a row.
func waitCells(w control.Wait) []string {
	op := printable(w.Op)
	if w.Detail != "" {
		op += " (" + printable(w.Detail) + ")"
	}
	peer := "all"
	switch {
	case w.Peer >= 0:
		peer = "rank " + strconv.Itoa(w.Peer)
	case w.Peer < -1:
		peer = "anyone"
	}
	return []string{op, peer, seconds(w.Since), printable(w.Where)}
}

// writeRows aligns the cells of all rows; the last cell of a short row may run over its column.
func writeRows(b *strings.Builder, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			if i < len(r)-1 || len(r) == len(width) {
				width[i] = max(width[i], utf8.RuneCountInString(cell))
			}
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, cell := range r {
			fmt.Fprintf(&line, "%-*s  ", width[i], cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
}
