package main

import (
	"fmt"
	"io"
	"strings"
)

// infoSection is a headed block of `pgasrun info`.
type infoSection struct {
	title string
	rows  []infoRow
}

// infoRow is one line: what, how much, and a remark such as the cure for too little. Value and note may be empty.
type infoRow struct{ name, value, note string }

// libraryInfo is where the library describes itself: transports found here, memory per rank, per peer and per
// window, variables with value and default. So far it tells what pgasrun gives every rank.
func libraryInfo() []infoSection {
	return []infoSection{{"variables that every rank gets from pgasrun", []infoRow{
		{"PGAS_JOB", "a name made at the start", "equal on all ranks; also the name of the PMI key-value space"},
		{"PGAS_RANK, PGAS_SIZE", "R, N", "also as PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS"},
		{"PMI_FD", "3", "a socket that speaks PMI-1.1"},
		{"PGAS_CONTROL_FD", "4", "a socket for questions of the launcher"},
		{"PGAS_STATS", "1 with --stats", "asks the rank to count"},
	}}}
}

// writeInfo prints sections with their columns aligned, each section for itself.
func writeInfo(w io.Writer, sections []infoSection) error {
	var b strings.Builder
	for i, s := range sections {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintln(&b, s.title)
		name, value := 0, 0
		for _, r := range s.rows {
			name, value = max(name, len(r.name)), max(value, len(r.value))
		}
		for _, r := range s.rows {
			line := fmt.Sprintf("  %-*s  %-*s  %s", name, r.name, value, r.value, r.note)
			fmt.Fprintln(&b, strings.TrimRight(line, " "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// bytesText prints a number of bytes as people read it.
func bytesText(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
