package docs_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var updateGolden = flag.Bool("update", false, "write the golden files anew")

// apiFile lists what the public packages export, a line each.
const apiFile = "docs/api.txt"

// TestAPI: nothing that a program can write is added, changed or lost unless docs/api.txt says so, in the same change. The list
// is made anew with go test ./test/docs -run TestAPI -update.
func TestAPI(t *testing.T) {
	dirs := slices.Sorted(maps.Keys(public(t)))
	imports := compiled(t, dirs)
	var lines []string
	for _, dir := range dirs {
		pkg, err := imports.Import("gopgas/" + dir)
		require.NoError(t, err)
		lines = append(lines, api(pkg)...)
		requireToldAliases(t, dir, pkg)
	}
	require.Greater(t, len(lines), 500)
	have := strings.Join(lines, "\n") + "\n"
	if *updateGolden {
		require.NoError(t, os.WriteFile(filepath.Join(root, apiFile), []byte(have), 0o644))
	}
	lost, added := differences(strings.Split(text(t, apiFile), "\n"), strings.Split(have, "\n"))
	for _, line := range lost {
		t.Errorf("gone or changed: %s", line)
	}
	for _, line := range added {
		t.Errorf("new or changed: %s", line)
	}
	if t.Failed() {
		t.Logf("if that is meant: go test ./test/docs -run '^TestAPI$' -update, and a line of CHANGELOG.md; docs/api-stability.md says what may change")
	}
}

// TestRings: what stands in packages for programs but takes or returns what lies inside, so that programs cannot use it, is named among the
// exceptions; and what is named there is there.
func TestRings(t *testing.T) {
	page, list := text(t, "docs/api-stability.md"), text(t, apiFile)
	hook := regexp.MustCompile(`(?m)^(?:pgas|window|sync|sync/coll|pgas/pgastest): (?:func ([A-Z]\w*)|method \(\*?([A-Z]\w*)[^)]*\) (\w+)).*\b(?:proto|symheap|racecheck|mem|atom\.Elem|turns)\b.*$`)
	found := hook.FindAllStringSubmatch(list, -1)
	require.Greater(t, len(found), 5)
	for _, m := range found {
		name := m[1]
		if m[2] != "" {
			name = m[2] + "." + m[3]
		}
		require.Contains(t, page, name, "not among the exceptions: %s", m[0])
	}
	for _, m := range regexp.MustCompile("`(?:Team|World)\\.([A-Z]\\w*)`").FindAllStringSubmatch(page, -1) {
		require.Regexp(t, `(?m)^(?:sync|pgas): method \(\*(?:Team|World)\) `+m[1]+`\(`, list)
	}
}

// differences returns the lines that are only in one of two lists.
func differences(before, after []string) (lost, added []string) {
	had, has := map[string]bool{}, map[string]bool{}
	for _, l := range before {
		had[l] = true
	}
	for _, l := range after {
		has[l] = true
		if !had[l] {
			added = append(added, l)
		}
	}
	for _, l := range before {
		if !has[l] {
			lost = append(lost, l)
		}
	}
	return lost, added
}

// api returns what a package exports, sorted: functions and methods with their types, exported fields, and the methods of
// interfaces. Names of parameters, values of constants and everything unexported are left out, except for the methods of unexported
// types that exported ones lead to. A type of an internal package that has a public name, by an alias, is listed under that.
func api(pkg *types.Package) []string {
	l := &lister{pkg: pkg, hidden: map[*types.Named]bool{}}
	for _, name := range pkg.Scope().Names() {
		if token.IsExported(name) {
			l.object(pkg.Scope().Lookup(name))
		}
	}
	for i := 0; i < len(l.queue); i++ { // it may grow
		l.methods(l.queue[i], l.queue[i].Obj().Name())
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines)
}

// lister collects the lines of one package.
type lister struct {
	pkg    *types.Package
	lines  []string
	queue  []*types.Named // unexported types that have been met
	hidden map[*types.Named]bool
}

func (l *lister) add(format string, args ...any) {
	path := strings.TrimPrefix(l.pkg.Path(), "gopgas/")
	l.lines = append(l.lines, path+": "+fmt.Sprintf(format, args...))
}

func (l *lister) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		l.add("const %s %s", o.Name(), l.typ(o.Type()))
	case *types.Var:
		l.add("var %s %s", o.Name(), l.typ(o.Type()))
	case *types.Func:
		l.add("func %s%s", o.Name(), l.signature(o.Signature()))
	case *types.TypeName:
		if alias, ok := o.Type().(*types.Alias); ok {
			l.add("type %s = %s", o.Name(), l.typ(alias.Rhs()))
			if n := inside(alias); n != nil { // it is listed nowhere else, and is public by this name
				l.declared(n, o.Name())
			}
			return
		}
		l.declared(o.Type().(*types.Named), o.Name())
	}
}

// inside is the type of an internal package that an alias names, perhaps by aliases of internal packages; nil: it names another, or
// by an alias that is listed itself.
func inside(alias *types.Alias) *types.Named {
	for next := alias.Rhs(); ; {
		switch n := next.(type) {
		case *types.Alias:
			if !internal(n.Obj()) {
				return nil
			}
			next = n.Rhs()
		case *types.Named:
			if !internal(n.Obj()) {
				return nil
			}
			return n
		default:
			return nil
		}
	}
}

func internal(o *types.TypeName) bool {
	return o.Pkg() != nil && strings.Contains(o.Pkg().Path()+"/", "/internal/")
}

// requireToldAliases: go doc shows of an alias no more than its comment, so that names the methods and fields of what lies inside.
func requireToldAliases(t *testing.T, dir string, pkg *types.Package) {
	t.Helper()
	for _, f := range parsed(t, dir).files {
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				continue
			}
			for _, spec := range decl.Specs {
				name := spec.(*ast.TypeSpec).Name.Name
				o := pkg.Scope().Lookup(name)
				if o == nil || !o.Exported() { // nil: it is of another platform
					continue
				}
				alias, ok := o.Type().(*types.Alias)
				if !ok || inside(alias) == nil {
					continue
				}
				l := &lister{pkg: pkg, hidden: map[*types.Named]bool{}}
				l.declared(inside(alias), name)
				for _, line := range l.lines {
					_, member, ok := strings.Cut(strings.TrimPrefix(line, strings.TrimPrefix(pkg.Path(), "gopgas/")+": "), "struct, ")
					if _, method, isMethod := strings.Cut(line, ") "); isMethod {
						member, ok = method, true
					}
					if ok {
						member = strings.FieldsFunc(member, func(r rune) bool { return r == ' ' || r == '(' })[0]
						require.Contains(t, decl.Doc.Text(), member, "%s: the comment of alias %s", dir, name)
					}
				}
			}
		}
	}
}

// declared lists a type with its fields and methods under a name.
func (l *lister) declared(n *types.Named, name string) {
	head := name + l.parameters(n.TypeParams())
	switch u := n.Underlying().(type) {
	case *types.Struct:
		l.add("type %s struct", head)
		for f := range u.Fields() {
			if f.Exported() {
				l.add("type %s struct, %s %s", name, f.Name(), l.typ(f.Type()))
			}
		}
	case *types.Interface:
		l.add("type %s interface", head)
		for m := range u.Methods() {
			l.add("type %s interface, %s%s", name, m.Name(), l.signature(m.Signature()))
		}
		for e := range u.EmbeddedTypes() {
			if _, set := e.(*types.Union); set {
				l.add("type %s interface, %s", name, l.typ(e))
			}
		}
		return
	default:
		l.add("type %s %s", head, l.typ(u))
	}
	l.methods(n, name)
}

// methods lists the exported methods of a type under a name, those of embedded fields too.
func (l *lister) methods(n *types.Named, of string) {
	values := types.NewMethodSet(n)
	if n.TypeParams().Len() > 0 {
		var names []string
		for p := range n.TypeParams().TypeParams() {
			names = append(names, p.Obj().Name())
		}
		of += "[" + strings.Join(names, ", ") + "]"
	}
	for s := range types.NewMethodSet(types.NewPointer(n)).Methods() {
		m := s.Obj().(*types.Func)
		if !m.Exported() {
			continue
		}
		star := "*"
		if values.Lookup(l.pkg, m.Name()) != nil {
			star = ""
		}
		l.add("method (%s%s) %s%s", star, of, m.Name(), l.signature(s.Type().(*types.Signature)))
	}
}

// signature is a function's type without the names of its parameters.
func (l *lister) signature(s *types.Signature) string {
	bare := types.NewSignatureType(nil, nil, nil, nameless(s.Params()), nameless(s.Results()), s.Variadic())
	return l.parameters(s.TypeParams()) + strings.TrimPrefix(l.typ(bare), "func")
}

func nameless(t *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range t.Variables() {
		vars = append(vars, types.NewParam(token.NoPos, nil, "", unnamed(v.Type())))
	}
	return types.NewTuple(vars...)
}

// unnamed takes the names of parameters out of a function type.
func unnamed(t types.Type) types.Type {
	if s, ok := t.(*types.Signature); ok {
		return types.NewSignatureType(nil, nil, nil, nameless(s.Params()), nameless(s.Results()), s.Variadic())
	}
	return t
}

func (l *lister) parameters(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var all []string
	for p := range list.TypeParams() {
		all = append(all, p.Obj().Name()+" "+l.typ(p.Constraint()))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// typ is a type as this package writes it. An unexported type of the package is looked at later.
func (l *lister) typ(t types.Type) string {
	l.visit(t)
	return types.TypeString(unnamed(t), func(p *types.Package) string {
		if p == l.pkg {
			return ""
		}
		return p.Name()
	})
}

// visit queues the unexported types of the package that t is made of.
func (l *lister) visit(t types.Type) {
	switch t := t.(type) {
	case *types.Pointer:
		l.visit(t.Elem())
	case *types.Slice:
		l.visit(t.Elem())
	case *types.Array:
		l.visit(t.Elem())
	case *types.Map:
		l.visit(t.Key())
		l.visit(t.Elem())
	case *types.Signature:
		for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range tuple.Variables() {
				l.visit(v.Type())
			}
		}
	case *types.Named:
		o := t.Origin()
		if o.Obj().Pkg() == l.pkg && !o.Obj().Exported() && !l.hidden[o] && !types.IsInterface(o) {
			l.hidden[o] = true
			l.queue = append(l.queue, o)
		}
	}
}

func TestDifferences(t *testing.T) {
	lost, added := differences([]string{"a", "b", "c"}, []string{"a", "c", "d"})
	require.Equal(t, []string{"b"}, lost)
	require.Equal(t, []string{"d"}, added)
}

// TestAPIOfAliases: fields and methods of what lies in internal packages are listed under the public name, and only there.
func TestAPIOfAliases(t *testing.T) {
	check := func(path, source string, imports map[string]*types.Package) *types.Package {
		f, err := parser.ParseFile(fset, "p.go", source, 0)
		require.NoError(t, err)
		pkg, err := (&types.Config{Importer: known(imports)}).Check(path, fset, []*ast.File{f}, nil)
		require.NoError(t, err)
		return pkg
	}
	inner := check("m/internal/inner", `package inner
		type Handle struct { Rank int; hidden bool }
		func (h Handle) Done() bool { return h.hidden }
		func (h *Handle) Wait(limit int) error { return nil }
		type Op uint8
		func (o Op) String() string { return "" }`, nil)
	outer := check("m/outer", `package outer
		import "m/internal/inner"
		type Handle = inner.Handle
		type Kind = inner.Op
		type Old = Kind
		type Many []Handle`, map[string]*types.Package{"m/internal/inner": inner})
	require.Equal(t, []string{
		"m/outer: method (*Handle) Wait(int) error",
		"m/outer: method (Handle) Done() bool",
		"m/outer: method (Kind) String() string",
		"m/outer: type Handle = inner.Handle",
		"m/outer: type Handle struct",
		"m/outer: type Handle struct, Rank int",
		"m/outer: type Kind = inner.Op",
		"m/outer: type Kind uint8",
		"m/outer: type Many []Handle",
		"m/outer: type Old = Kind",
	}, api(outer))
}

// known is an importer of packages that are there already.
type known map[string]*types.Package

func (k known) Import(path string) (*types.Package, error) { return k[path], nil }

// TestAPILines holds the list's form to a package that is made for it.
func TestAPILines(t *testing.T) {
	f, err := parser.ParseFile(fset, "p.go", `package p
		type base struct{ inner int }
		func (b *base) Shared(n int) error { return nil }
		type Thing[T any] struct { base; Name string; count int }
		func (t Thing[T]) Each(f func(i int, v T) bool) {}
		type Mode uint8
		const Fast Mode = 1
		type Source interface { Next(limit int) (v []byte, err error) }
		type Short = Thing[int]
		type Number interface{ ~int | ~float64 }
		func Sum[N Number](first N, more ...N) (total N) { return }
		func begin() int { return 0 }
		type cursor struct{}
		func (cursor) Step() {}
		func Begin() *cursor { return nil }`, 0)
	require.NoError(t, err)
	pkg, err := new(types.Config).Check("p", fset, []*ast.File{f}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{
		"p: const Fast Mode",
		"p: func Begin() *cursor",
		"p: func Sum[N Number](N, ...N) N",
		"p: method (*Thing[T]) Shared(int) error",
		"p: method (Thing[T]) Each(func(int, T) bool)",
		"p: method (cursor) Step()",
		"p: type Mode uint8",
		"p: type Number interface",
		"p: type Number interface, ~int | ~float64",
		"p: type Short = Thing[int]",
		"p: type Source interface",
		"p: type Source interface, Next(int) ([]byte, error)",
		"p: type Thing struct, Name string",
		"p: type Thing[T any] struct",
	}, api(pkg))
}
