package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// state objects to what a package remembers outside its values: init functions and mutable package variables.
//
// A package variable passes when nothing in the package writes to it or takes its address, and it is the blank
// name, a sentinel error (named err…, with a value), or a table: a composite literal, or a basic value, made
// of constants, functions and further tables without any call.
func (w *walk) state() {
	vars := map[string]bool{}
	for _, src := range w.files {
		if src.tree == nil {
			continue
		}
		for _, d := range src.tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					w.object("init", d.Pos(), "func init: do it in a constructor that someone calls and that can fail")
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR {
					for _, s := range d.Specs {
						w.oneVar(s.(*ast.ValueSpec), vars)
					}
				}
			}
		}
	}
	w.writes(vars)
}

// oneVar judges a declaration and adds its names to vars.
func (w *walk) oneVar(s *ast.ValueSpec, vars map[string]bool) {
	for i, id := range s.Names {
		if id.Name == "_" {
			continue
		}
		vars[id.Name] = true
		var value ast.Expr
		if i < len(s.Values) {
			value = s.Values[i]
		}
		sentinel := strings.HasPrefix(strings.ToLower(id.Name), "err") && value != nil
		if !sentinel && !(value != nil && w.constant(value)) {
			w.object("var", id.Pos(), "package variable %s: only sentinel errors and tables of constants live beside types; "+
				"put it into the value it belongs to", id.Name)
		}
	}
}

// constant reports whether e is made of literals, names and tables, without a call that is not a conversion to
// a named basic type. Locks and atomics are state, not tables.
func (w *walk) constant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit, *ast.Ident, *ast.SelectorExpr:
		return true
	case *ast.ParenExpr:
		return w.constant(e.X)
	case *ast.UnaryExpr:
		return e.Op != token.ARROW && e.Op != token.AND && w.constant(e.X)
	case *ast.BinaryExpr:
		return w.constant(e.X) && w.constant(e.Y)
	case *ast.KeyValueExpr:
		return w.constant(e.Key) && w.constant(e.Value)
	case *ast.CallExpr:
		return w.info.Types[e.Fun].IsType() && len(e.Args) == 1 && w.constant(e.Args[0])
	case *ast.CompositeLit:
		if e.Type != nil && w.lockType(e.Type) {
			return false
		}
		for _, x := range e.Elts {
			if !w.constant(x) {
				return false
			}
		}
		return true
	case *ast.FuncLit:
		return true
	}
	return false
}

// lockType reports whether t mentions a type of the standard sync or sync/atomic.
func (w *walk) lockType(t ast.Expr) (found bool) {
	ast.Inspect(t, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if pkg, _, ok := w.imported(e); ok && (pkg == "sync" || pkg == "sync/atomic") {
				found = true
			}
		}
		return !found
	})
	return found
}

// writes objects to assignments to vars, to elements of them, and to taking their address.
func (w *walk) writes(vars map[string]bool) {
	bad := func(e ast.Expr, what string) {
		if id := w.root(e); id != nil && vars[id.Name] {
			w.object("var", e.Pos(), "package variable %s is %s: it would be state", id.Name, what)
		}
	}
	w.each(func(_ *file, n ast.Node) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				bad(e, "assigned to")
			}
		case *ast.IncDecStmt:
			bad(n.X, "counted")
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if e != nil {
						bad(e, "assigned to")
					}
				}
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				bad(n.X, "used by address")
			}
		case *ast.CallExpr:
			if len(n.Args) > 0 && (w.builtin(n.Fun, "delete") || w.builtin(n.Fun, "clear") || w.builtin(n.Fun, "copy")) {
				bad(n.Args[0], "changed")
			}
		}
	})
}

// root returns the package-level variable that e writes through, and nil where there is none.
func (w *walk) root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.Ident:
			v, ok := w.info.Uses[x].(*types.Var)
			if ok && v.Parent() != nil && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
				return x
			}
			return nil
		default:
			return nil
		}
	}
}
