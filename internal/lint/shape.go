package lint

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
)

// Limits on the size of things.
const (
	maxLines    = 500 // of a file, tests included
	minDocLines = 21  // of a doc.go
	lessonLines = 150 // of an example, which is one file besides its tests
)

// shape objects to long files, wide packages and thin package comments.
func (w *walk) shape() {
	sources, commented := 0, false
	var doc *file
	for _, f := range w.files {
		if f.lines > maxLines && (f.tree == nil || !ast.IsGenerated(f.tree)) {
			w.objectFile("length", f.name, 0, "%d lines, more than %d: split it by steps of the story", f.lines, maxLines)
		}
		if f.tree == nil {
			continue
		}
		sources++
		commented = commented || f.tree.Doc != nil
		if path.Base(f.name) == "doc.go" {
			doc = f
		}
	}
	if strings.HasPrefix(w.Path, "examples/") {
		w.lesson()
	}
	if sources > 0 && !commented {
		w.objectFile("doc", w.where(), 0, "package %s has no package comment", w.Path)
	}
	if w.Name != "main" && sources > 1 {
		switch {
		case doc == nil:
			w.objectFile("doc", w.where(), 0, "package %s has several files and no doc.go", w.Path)
		case doc.lines < minDocLines:
			w.objectFile("doc", doc.name, 0, "%d lines, fewer than %d: purpose, terms, life of a …, invariants, lock order, limits",
				doc.lines, minDocLines)
		}
	}
	budget := nameBudget
	if b, ok := budgets[w.Path]; ok {
		budget = b
	}
	if names := w.exported(); len(names) > budget {
		w.objectFile("names", w.where(), 0, "package %s exports %d names, more than %d", w.Path, len(names), budget)
	}
}

// lesson objects to an example that is not read in one go.
func (w *walk) lesson() {
	first := ""
	for _, f := range w.files {
		switch {
		case f.tree == nil:
		case first != "":
			w.objectFile("lesson", f.name, 0, "an example is one file, and there is %s", first)
		case f.lines > lessonLines:
			w.objectFile("lesson", f.name, 0, "%d lines, more than %d: leave out what teaches nothing", f.lines, lessonLines)
		default:
			first = f.name
		}
	}
}

// exported returns the package-level exported names; a name declared by two twins counts once.
func (w *walk) exported() map[string]bool {
	names := map[string]bool{}
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names[id.Name] = true
		}
	}
	for _, f := range w.files {
		if f.tree == nil {
			continue
		}
		for _, d := range f.tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						add(s.Name)
					case *ast.ValueSpec:
						for _, id := range s.Names {
							add(id)
						}
					}
				}
			}
		}
	}
	return names
}

// docs objects to exported names without a comment. In a group of constants or variables the group's comment
// or the one at the end of the line will do. Error and String say nothing that their names do not.
func (w *walk) docs() {
	for _, f := range w.files {
		if f.tree == nil {
			continue
		}
		for _, d := range f.tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				w.docFunc(d)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					w.docSpec(d, s)
				}
			}
		}
	}
}

func (w *walk) docFunc(d *ast.FuncDecl) {
	if d.Doc != nil || !d.Name.IsExported() {
		return
	}
	if d.Recv != nil && (!ast.IsExported(receiver(d)) || d.Name.Name == "Error" || d.Name.Name == "String") {
		return
	}
	w.object("doc", d.Pos(), "exported %s has no comment", d.Name.Name)
}

// receiver returns the name of the type that d is a method of.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func (w *walk) docSpec(d *ast.GenDecl, s ast.Spec) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && s.Comment == nil && (d.Doc == nil || d.Lparen != token.NoPos) {
			w.object("doc", s.Pos(), "exported %s has no comment", s.Name.Name)
		}
	case *ast.ValueSpec:
		if s.Doc != nil || s.Comment != nil || d.Doc != nil {
			return
		}
		for _, id := range s.Names {
			if id.IsExported() {
				w.object("doc", id.Pos(), "exported %s has no comment", id.Name)
			}
		}
	}
}
