package lint

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Package is the source of one package, for all platforms and build tags.
type Package struct {
	Path string // without the module's prefix: "internal/mem"
	Name string // as its package clauses say

	fset  *token.FileSet
	files []*file
	info  *types.Info
}

// file is one source file. Test files carry no tree.
type file struct {
	name  string // from the module's root, with slashes
	lines int
	tree  *ast.File // nil for a test file or a source that is not Go
}

// Load returns the packages of the module at root, as `go list ./...` names them, together with the module's
// own path. It runs the go command and reads files, and needs no network.
func Load(root string) (module string, pkgs []*Package, err error) {
	out, err := goList(root, "-m", "-f", "{{.Path}}")
	if err != nil {
		return "", nil, err
	}
	module = strings.TrimSpace(out)
	out, err = goList(root, "-e", "-f", "{{.ImportPath}}\t{{.Name}}\t{{.Dir}}", "./...")
	if err != nil {
		return "", nil, err
	}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 3 {
			return "", nil, fmt.Errorf("go list printed %q, not a path, a name and a folder", line)
		}
		rel, _ := ours(module, f[0])
		p := newPackage(rel, f[1])
		if err := p.readDir(root, f[2]); err != nil {
			return "", nil, err
		}
		p.resolve()
		pkgs = append(pkgs, p)
	}
	return module, pkgs, nil
}

// ours returns an import path of this module without the module's prefix; ok is false for any other path.
// Without the prefix gopgas/sync looks like the standard sync, so ok must be looked at.
func ours(module, path string) (rel string, ok bool) {
	if path == module {
		return ".", true
	}
	rel, ok = strings.CutPrefix(path, module+"/")
	return rel, ok
}

func goList(root string, args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

func newPackage(path, name string) *Package {
	return &Package{Path: path, Name: name, fset: token.NewFileSet()}
}

// readDir adds the sources in dir. Go files of another package (a generator kept out by a build tag) are left
// to their own compiler run.
func (p *Package) readDir(root, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read package %s: %w", p.Path, err)
	}
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".go", ".c", ".h", ".s":
		default:
			continue
		}
		full := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(full)
		if err != nil {
			return fmt.Errorf("read package %s: %w", p.Path, err)
		}
		name, err := filepath.Rel(root, full)
		if err != nil {
			return fmt.Errorf("read package %s: %w", p.Path, err)
		}
		if err := p.add(filepath.ToSlash(name), text); err != nil {
			return err
		}
	}
	return nil
}

// add parses one file.
func (p *Package) add(name string, text []byte) error {
	f := &file{name: name, lines: bytes.Count(text, []byte("\n"))}
	if filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
		tree, err := parser.ParseFile(p.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		if tree.Name.Name != p.Name && p.Name != "" {
			return nil
		}
		f.tree = tree
	}
	p.files = append(p.files, f)
	return nil
}

// errBlind is what the type checker hears for every import: names are resolved within the package only.
var errBlind = errors.New("imports are not resolved")

type blind struct{}

func (blind) Import(string) (*types.Package, error) { return nil, errBlind }

// resolve finds what the names of p refer to. Type errors are expected, since imports stay unknown and twins
// for two platforms declare the same names; what could be resolved is.
func (p *Package) resolve() {
	p.info = &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: blind{}, Error: func(error) {}, FakeImportC: true}
	var trees []*ast.File
	for _, f := range p.files {
		if f.tree != nil {
			trees = append(trees, f.tree)
		}
	}
	_, _ = conf.Check(p.Path, p.fset, trees, p.info)
}

// imported returns the import path and the name that e selects from a package: "time", "Now".
func (p *Package) imported(e ast.Expr) (path, name string, ok bool) {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", "", false
	}
	pkg, ok := p.info.Uses[x].(*types.PkgName)
	if !ok {
		return "", "", false
	}
	return pkg.Imported().Path(), sel.Sel.Name, true
}

// builtin reports whether e names the predeclared function name.
func (p *Package) builtin(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	if !ok || id.Name != name {
		return false
	}
	_, ok = p.info.Uses[id].(*types.Builtin)
	return ok
}
