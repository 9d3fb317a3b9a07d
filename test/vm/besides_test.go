package vm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rows of numbers.sh, and what the rows of quotients begin with that besides adds.
const (
	oneAtATime = "8 B put, one at a time"
	together   = "8 B puts, 64 together"
	nearby     = "8 B puts side by side, 64 together" // which the others' tools do not have
	quotient   = "one at a time / "
	aimed      = 1.5 // at least, of the quotient
)

// ours is the library, and again the same once more in each round: what it differs by from itself is what the machine does.
const (
	ours  = "ours"
	again = "ours again"
)

var besideRows = []string{
	oneAtATime, "8 B get", "64-bit fetch-add", together,
	"64 KiB put, one at a time", "64 KiB puts, 64 together", "1 MiB put, one at a time", "1 MiB puts, 64 together",
}

// gasnet is what GASNet-EX 2025.8.0's ibv conduit took in such a machine on another day, in microseconds, at best: a blocking put and get, a
// put that does not block, and its bandwidths of 97 and 108 MiB/s. It is not in Debian, so it takes no part in a run.
var gasnet = map[string]float64{
	oneAtATime: 43.1, "8 B get": 89.5, together: 32.7, "64 KiB puts, 64 together": 644, "1 MiB puts, 64 together": 9259,
}

// cell names what one program took for one row.
type cell struct{ row, program string }

// sheet is what was measured: microseconds for one operation, by round.
type sheet struct {
	rows, programs []string
	values         map[cell][]float64
	elsewhere      map[string]float64 // by row
}

// results takes the lines of numbers.sh apart.
func results(out string) sheet {
	s := sheet{values: map[cell][]float64{}}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 4 || f[0] != "result" {
			continue
		}
		if !slices.Contains(s.rows, f[1]) {
			s.rows = append(s.rows, f[1])
		}
		if !slices.Contains(s.programs, f[2]) {
			s.programs = append(s.programs, f[2])
		}
		if v, err := strconv.ParseFloat(f[3], 64); err == nil {
			s.values[cell{f[1], f[2]}] = append(s.values[cell{f[1], f[2]}], v)
		}
	}
	for _, row := range []string{together, nearby} {
		s.gain(row)
	}
	return s
}

// gain adds what it brings each program to post many together, as a row does, rather than one at a time.
func (s *sheet) gain(row string) {
	for _, program := range s.programs {
		one, many := s.values[cell{oneAtATime, program}], s.values[cell{row, program}]
		for i := range min(len(one), len(many)) { // of the same round
			s.values[cell{quotient + row, program}] = append(s.values[cell{quotient + row, program}], one[i]/many[i])
			if !slices.Contains(s.rows, quotient+row) {
				s.rows = append(s.rows, quotient+row)
			}
		}
	}
}

// besides makes the second table of what numbers.sh has printed: medians, with the least and the greatest, and whether the aim is reached, to be
// ahead of each of the others. elsewhere is what GASNet-EX took.
func besides(out string, elsewhere map[string]float64) string {
	s := results(out)
	s.elsewhere = elsewhere
	var table strings.Builder
	table.WriteString("| us for one | " + strings.Join(s.programs, " | ") + " | GASNet-EX, another day | ours again / ours | ahead of each? |\n" +
		"| ---" + strings.Repeat(" | ---:", len(s.programs)+2) + " | --- |\n")
	for _, row := range s.rows {
		table.WriteString("| " + row)
		for _, program := range s.programs {
			table.WriteString(" | " + s.cell(row, program))
		}
		if us, ok := s.elsewhere[row]; ok {
			fmt.Fprintf(&table, " | %.4g", us)
		} else {
			table.WriteString(" | –")
		}
		control := s.control(row)
		fmt.Fprintf(&table, " | %s | %s |\n", numbers(control), s.verdicts(row, control))
	}
	return table.String()
}

func (s sheet) cell(row, program string) string { return numbers(s.values[cell{row, program}]) }

func numbers(v []float64) string {
	if len(v) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.4g (%.4g–%.4g)", middle(v), slices.Min(v), slices.Max(v))
}

// middle is the median.
func middle(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}

// control is what the library took the second time in a round, of what it took the first time.
func (s sheet) control(row string) (quotients []float64) {
	first, second := s.values[cell{row, ours}], s.values[cell{row, again}]
	for i := range min(len(first), len(second)) {
		quotients = append(quotients, second[i]/first[i])
	}
	return quotients
}

// verdicts says for each of the others whether the library is ahead of it: a difference no greater than the greatest that
// the library shows to itself is a tie.
func (s sheet) verdicts(row string, control []float64) string {
	mine := slices.Concat(s.values[cell{row, ours}], s.values[cell{row, again}])
	if len(mine) == 0 {
		return "–"
	}
	if strings.HasPrefix(row, quotient) {
		if middle(mine) < aimed {
			return fmt.Sprintf("missed, at least %v asked", aimed)
		}
		return fmt.Sprintf("reached, at least %v asked", aimed)
	}
	noise := 1.0
	for _, q := range control {
		noise = max(noise, q, 1/q)
	}
	var all []string
	judge := func(name string, us float64) {
		q, word := us/middle(mine), "ahead of"
		switch {
		case q < 1/noise:
			word = "**behind**"
		case q <= noise:
			word = "tie with"
		}
		all = append(all, fmt.Sprintf("%s %s, %.2f", word, name, q))
	}
	for _, program := range s.programs {
		if v := s.values[cell{row, program}]; program != ours && program != again && len(v) > 0 {
			judge(program, middle(v))
		}
	}
	if us, ok := s.elsewhere[row]; ok {
		judge("GASNet-EX", us)
	}
	return strings.Join(all, "; ")
}

func TestBesides(t *testing.T) {
	require.Equal(t, "| us for one | ours | UCX | ours again | GASNet-EX, another day | ours again / ours | ahead of each? |\n"+
		"| --- | ---: | ---: | ---: | ---: | ---: | --- |\n"+
		"| put | 2 (1–3.5) | 7 (7–7) | 2.1 (2.1–2.1) | – | 0.6 (0.6–0.6) | ahead of UCX, 3.41 |\n"+
		"| 8 B get | – | 12.35 (12.35–12.35) | – | 89.5 | – | – |\n", besides(
		"round 1\nresult\tput\tours\t3.5\nresult\tput\tUCX\t7\nresult\t8 B get\tours\t-\nresult\t8 B get\tUCX\t12.345\n"+
			"result\tput\tours again\t2.1\nresult\tput\tours\t1\nresult\tput\tours\t2\n| not a result |\n", gasnet))
	text := besides("result\t8 B put, one at a time\tours\t6\nresult\t8 B puts, 64 together\tours\t2\n"+
		"result\t8 B put, one at a time\tours\t8\nresult\t8 B puts, 64 together\tours\t4\nresult\t8 B put, one at a time\tUCX\t8\n"+
		"result\t8 B puts, 64 together\tours again\t3\n", gasnet)
	require.Contains(t, text, "| one at a time / 8 B puts, 64 together | 2.5 (2–3) | – | – | – | – | reached, at least 1.5 asked |\n")
	require.Contains(t, text, "| 8 B puts, 64 together | 3 (2–4) | – | 3 (3–3) | 32.7 | 1.5 (1.5–1.5) | ahead of GASNet-EX, 10.90 |\n")
	tie := "result\tput\tours\t10\nresult\tput\tUCX\t10\nresult\tput\tperftest\t5\nresult\tput\tours again\t12\n"
	require.Contains(t, besides(tie, nil), "| tie with UCX, 0.91; **behind** perftest, 0.45 |\n", "the library differs by 1.2 from itself")
}
