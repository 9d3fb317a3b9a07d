package lint

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// Finding is one objection.
type Finding struct {
	File string
	Line int // 0: the file or the package as a whole
	Rule string
	Text string // what is wrong and what to do instead
}

// String is the finding as one line that an editor can jump to.
func (f Finding) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s (rule %s)", f.File, f.Text, f.Rule)
	}
	return fmt.Sprintf("%s:%d: %s (rule %s)", f.File, f.Line, f.Text, f.Rule)
}

// walk is one run of all rules over one package.
type walk struct {
	*Package
	module   string
	findings []Finding
}

// Check runs every rule over pkgs, packages of the given module, and returns what no grant covers, sorted by
// place.
func Check(module string, pkgs []*Package) []Finding {
	var all []Finding
	for _, p := range pkgs {
		w := &walk{Package: p, module: module}
		w.imports()
		w.machine()
		w.waits()
		w.state()
		w.panics()
		w.shape()
		w.docs()
		all = append(all, w.findings...)
	}
	sortFindings(all)
	return all
}

func sortFindings(all []Finding) {
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Text, b.Text))
	})
}

// object adds a finding at pos unless a grant covers it.
func (w *walk) object(rule string, pos token.Pos, format string, args ...any) {
	at := w.fset.Position(pos)
	w.objectFile(rule, at.Filename, at.Line, format, args...)
}

// objectFile is object for a place that has no position in a tree.
func (w *walk) objectFile(rule, name string, line int, format string, args ...any) {
	if granted(rule, w.Path, name) {
		return
	}
	w.findings = append(w.findings, Finding{File: name, Line: line, Rule: rule, Text: fmt.Sprintf(format, args...)})
}

// each calls f for every node of every non-test file.
func (w *walk) each(f func(*file, ast.Node)) {
	for _, src := range w.files {
		if src.tree == nil {
			continue
		}
		ast.Inspect(src.tree, func(n ast.Node) bool {
			if n != nil {
				f(src, n)
			}
			return true
		})
	}
}
