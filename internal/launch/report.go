package launch

import (
	"fmt"
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
	ended     string         // how and when it ended; empty: it runs
	waits     []control.Wait // what it says it waits for
	answered  bool
	seen      string // what the system shows of a rank that did not answer
}

// hangReport prints the table. A rank that waits in several calls has a row for each. Rows that say something else in words
// do not widen the columns.
func hangReport(why string, after time.Duration, all []suspect) string {
	rows := [][]string{{"rank", "pid", "state", "waits in", "for", "since", "called at"}}
	running := 0
	for _, s := range all {
		id, state := []string{strconv.Itoa(s.rank), strconv.Itoa(s.pid)}, "running"
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
	if w.Peer >= 0 {
		peer = "rank " + strconv.Itoa(w.Peer)
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
