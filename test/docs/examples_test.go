package docs_test

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExamples: every exported type of a public package has an Example in the package's tests that is named for it or that
// names it, and go test compares what each of them prints.
func TestExamples(t *testing.T) {
	packages := public(t)
	require.Contains(t, packages, "window")
	require.Equal(t, "pgsync", packages["sync"])
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		src := parsed(t, dir)
		shown := map[string]bool{}
		for _, f := range src.tests {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Example") {
					continue
				}
				require.True(t, compared(f, fn), "%s: %s has no Output, so it is not run", dir, fn.Name.Name)
				name, _, _ := strings.Cut(strings.TrimPrefix(fn.Name.Name, "Example"), "_")
				shown[name] = true
				ast.Inspect(fn.Body, func(n ast.Node) bool {
					if sel, isSel := n.(*ast.SelectorExpr); isSel {
						if x, isIdent := sel.X.(*ast.Ident); isIdent && x.Name == packages[dir] {
							shown[sel.Sel.Name] = true
						}
					}
					return true
				})
			}
		}
		for _, f := range src.files {
			for _, d := range f.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range g.Specs {
					if s, isType := spec.(*ast.TypeSpec); isType && s.Name.IsExported() && !shown[s.Name.Name] {
						t.Errorf("%s.%s has no Example", dir, s.Name.Name)
					}
				}
			}
		}
	}
}

// compared reports whether a function has an Output comment.
func compared(f *ast.File, fn *ast.FuncDecl) bool {
	for _, c := range f.Comments {
		if c.Pos() > fn.Body.Pos() && c.End() < fn.Body.End() {
			text := strings.ToLower(c.Text())
			if strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:") {
				return true
			}
		}
	}
	return false
}
