package launch

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

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

// hangReport prints the table. A rank that waits in several calls has a row for each.
func hangReport(why string, after time.Duration, all []suspect) string {
	running := 0
	for _, s := range all {
		if s.ended == "" {
			running++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "pgasrun: hang report after %s (%s): %d of %d ranks run\n", seconds(after), why, running, len(all))
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "rank\tpid\tstate\twaits in\tfor\tsince\tcalled at")
	for _, s := range all {
		id := fmt.Sprintf("%d\t%d\t", s.rank, s.pid)
		switch {
		case s.ended != "":
			fmt.Fprintf(t, "%sended\t%s\n", id, s.ended)
		case !s.answered:
			fmt.Fprintf(t, "%srunning\tno answer: %s\n", id, s.seen)
		case len(s.waits) == 0:
			fmt.Fprintf(t, "%srunning\tnothing: it computes, or waits outside of the library\n", id)
		}
		for i, w := range s.waits {
			if i > 0 {
				id = "\t\t"
			}
			state := "running"
			if i > 0 {
				state = ""
			}
			op := printable(w.Op)
			if w.Detail != "" {
				op += " (" + printable(w.Detail) + ")"
			}
			peer := "all"
			if w.Peer >= 0 {
				peer = "rank " + strconv.Itoa(w.Peer)
			}
			fmt.Fprintf(t, "%s%s\t%s\t%s\t%s\t%s\n", id, state, op, peer, seconds(w.Since), printable(w.Where))
		}
	}
	t.Flush()
	return trimLines(b.String())
}

// trimLines takes the blanks off the ends of lines.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return strings.Join(lines, "\n")
}
