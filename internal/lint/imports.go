package lint

import (
	"go/ast"
	"strconv"
	"strings"
)

// imports holds every file against the import table, the list of outside modules, and the rooms for unsafe
// and C.
func (w *walk) imports() {
	if find(rooms, w.Path) < 0 {
		w.objectFile("room", w.where(), 0, "package %s is in no room: add a line to the table in internal/lint/rooms.go, "+
			"between the rooms that import it and the rooms it imports, and one to docs/architecture.md", w.Path)
		return
	}
	for _, src := range w.files {
		if src.tree == nil {
			continue
		}
		for _, spec := range src.tree.Imports {
			if target, err := strconv.Unquote(spec.Path.Value); err == nil {
				w.oneImport(spec, target)
			}
		}
	}
}

func (w *walk) oneImport(spec *ast.ImportSpec, target string) {
	if spec.Name != nil && spec.Name.Name == "." {
		w.object("import", spec.Pos(), "dot import of %s: name the package", target)
	}
	if rel, ok := ours(w.module, target); ok {
		if !mayImport(rooms, w.Path, rel) {
			w.object("import", spec.Pos(), "%s may not import %s: the table in internal/lint/rooms.go has no such arrow", w.Path, rel)
		}
		return
	}
	switch {
	case target == "unsafe":
		w.object("unsafe", spec.Pos(), "unsafe here: ask internal/mem for what is needed")
	case target == "C":
		w.object("cgo", spec.Pos(), "C here: only transport/verbs/internal/ibv borders on C")
	case strings.Contains(strings.Split(target, "/")[0], "."):
		w.outside(spec, target)
	}
}

// outside objects to a module that is not in the list, or not for this package.
func (w *walk) outside(spec *ast.ImportSpec, target string) {
	for _, o := range outsiders {
		if target != o.path && !strings.HasPrefix(target, o.path+"/") {
			continue
		}
		for pattern := range strings.FieldsSeq(o.imports) {
			if pattern == anything || matches(pattern, w.Path) {
				return
			}
		}
		w.object("import", spec.Pos(), "%s is for %s, not for %s", o.path, o.imports, w.Path)
		return
	}
	w.object("import", spec.Pos(), "%s is none of our dependencies: do without it, or give the reason in docs/adr and "+
		"list it in internal/lint/rooms.go", target)
}

// where is a file that stands for the whole package in a finding.
func (w *walk) where() string {
	for _, f := range w.files {
		if f.tree != nil {
			return f.name
		}
	}
	return w.Path
}
