package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"gopgas/pgas"
)

// infoSection is a headed block of `pgasrun info`.
type infoSection struct {
	title string
	rows  []infoRow
}

// infoRow is one line: what, how much, and a remark such as the cure for too little. Value and note may be empty.
type infoRow struct{ name, value, note string }

// sampleRanks is the size of the world for which `pgasrun info` tells what ranks, peers and windows cost.
const sampleRanks = 8

// libraryInfo is how the library describes itself: transports found here, memory per rank, per peer and per window, and
// every variable with its value in environ and its default.
func libraryInfo(environ []string) []infoSection {
	var out []infoSection
	for _, f := range pgas.Describe(context.Background(), environ, sampleRanks) {
		if len(out) == 0 || out[len(out)-1].title != f.Section {
			out = append(out, infoSection{title: f.Section})
		}
		last := &out[len(out)-1]
		last.rows = append(last.rows, infoRow{f.Name, f.Value, f.Note})
	}
	vars := infoSection{title: "environment (value here, default, meaning)"}
	for _, v := range pgas.Variables(environ) {
		value, def := v.Value, v.Default
		if value == "" {
			value = "-"
		}
		if def == "" {
			def = "-"
		}
		vars.rows = append(vars.rows, infoRow{v.Name, value, fmt.Sprintf("default %-5s %s", def, v.Meaning)})
	}
	return append(out, vars)
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
