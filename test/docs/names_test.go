package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fset has the positions of all files that are parsed.
var fset = token.NewFileSet()

// source is one package's files, tests apart from the rest.
type source struct {
	files, tests []*ast.File
}

// parsed returns the Go files of a folder of the module. Build tags are not looked at: what exists on some platform exists.
func parsed(t *testing.T, dir string) source {
	t.Helper()
	var s source
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, names, "%s has no Go files", dir)
	for _, name := range names {
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution|parser.ParseComments)
		require.NoError(t, err)
		if strings.HasSuffix(name, "_test.go") {
			s.tests = append(s.tests, f)
		} else {
			s.files = append(s.files, f)
		}
	}
	return s
}

// exported returns what a package exports: "Name", and "Type.Name" for methods and fields. A type that is another package's
// under a second name has that one's methods.
func exported(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	add := func(parts ...string) {
		for _, p := range parts {
			if !ast.IsExported(p) {
				return
			}
		}
		names[strings.Join(parts, ".")] = true
	}
	for _, f := range parsed(t, dir).files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					add(receiver(d.Recv.List[0].Type), d.Name.Name)
				} else {
					add(d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, n := range spec.Names {
							add(n.Name)
						}
					case *ast.TypeSpec:
						add(spec.Name.Name)
						members(spec, add)
						if other, name := elsewhere(f, spec); other != "" {
							for n := range exported(t, other) {
								if m, ok := strings.CutPrefix(n, name+"."); ok {
									add(spec.Name.Name, m)
								}
							}
						}
					}
				}
			}
		}
	}
	return names
}

// receiver returns the name of the type that a method is of.
func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// members adds the fields of a struct and the methods of an interface.
func members(spec *ast.TypeSpec, add func(...string)) {
	var list *ast.FieldList
	switch x := spec.Type.(type) {
	case *ast.StructType:
		list = x.Fields
	case *ast.InterfaceType:
		list = x.Methods
	default:
		return
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			add(spec.Name.Name, n.Name)
		}
	}
}

// elsewhere returns the folder and the name of a type of this module that spec gives another name to.
func elsewhere(f *ast.File, spec *ast.TypeSpec) (dir, name string) {
	sel, ok := spec.Type.(*ast.SelectorExpr)
	if !ok || spec.Assign == token.NoPos {
		return "", ""
	}
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		local := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			local = i.Name.Name
		}
		if pkg, isIdent := sel.X.(*ast.Ident); isIdent && pkg.Name == local {
			dir, _ = strings.CutPrefix(path, "gopgas/")
			return dir, sel.Sel.Name
		}
	}
	return "", ""
}

// public are the packages that users import, by folder, and their names.
func public(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || path == root {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch top, _, _ := strings.Cut(rel, "/"); {
		case e.Name() == "internal", e.Name() == "testdata", strings.HasPrefix(e.Name(), "."),
			top == "cmd", top == "docs", top == "examples", top == "test", top == "tools", top == "bin":
			return filepath.SkipDir
		}
		entries, err := os.ReadDir(path)
		for _, f := range entries {
			if strings.HasSuffix(f.Name(), ".go") {
				all[rel] = parsed(t, rel).files[0].Name.Name
				break
			}
		}
		return err
	}))
	return all
}

// TestComingFrom: every name of ours in the tables is one that a program can write.
func TestComingFrom(t *testing.T) {
	known := map[string]bool{}
	for _, dir := range []string{"pgas", "window", "sync", "sync/coll", "pgas/algo", "pgas/grid", "pgas/hashmap", "pgas/rpc", "pgas/pgastest", "transport"} {
		pkg := public(t)[dir]
		for n := range exported(t, dir) {
			known[pkg+"."+n] = true
			known[n] = true
		}
	}
	require.True(t, known["pgsync.AllReduce"] && known["Team.Split"] && known["Handle.Done"] && known["window.Config.Epochs"])
	document := text(t, "docs/coming-from.md")
	// AllReduce alone is a function; where it begins with a type or a package it can be told from other words.
	name := regexp.MustCompile(`^[A-Za-z]+(\.[A-Z][A-Za-z]*)+$`)
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, system := range []string{"MPI", "OpenSHMEM", "UPC++", "Global Arrays"} {
		rows := table(document, system, "gopgas", "where the meaning differs")
		require.Greater(t, len(rows), 15, system)
		for _, row := range rows {
			require.Len(t, row, 3, "%v", row)
			seen := strings.HasPrefix(row[1], "none")
			for _, m := range quoted.FindAllStringSubmatch(row[1], -1) {
				seen = seen || name.MatchString(m[1]) || strings.HasPrefix(m[1], "pgasrun ")
			}
			require.True(t, seen, "%s: %s has none of our names beside it", system, row[0])
			for _, m := range quoted.FindAllStringSubmatch(row[1]+row[2], -1) {
				if name.MatchString(m[1]) && m[1] != "context.Context" && !known[m[1]] {
					t.Errorf("%s: %s: there is no %s", system, row[0], m[1])
				}
			}
		}
	}
}
