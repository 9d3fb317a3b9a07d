package lint

import (
	"go/ast"
	"go/token"
	"go/types"
)

// waits objects to goroutines started past the scheduler and to operations on channels that can block. A
// select with a default does not wait and is allowed.
func (w *walk) waits() {
	seen := map[ast.Node]bool{} // cases of a select, which is judged as a whole
	w.each(func(_ *file, n ast.Node) {
		switch n := n.(type) {
		case *ast.GoStmt:
			w.object("wait", n.Pos(), "bare go statement: start it through internal/sched, which knows all that runs")
		case *ast.SelectStmt:
			if !hasDefault(n) {
				w.object("wait", n.Pos(), "select without default: %s", instead["wait"])
			}
			for _, c := range n.Body.List {
				markSeen(seen, c.(*ast.CommClause).Comm)
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW && !seen[n] {
				w.object("wait", n.Pos(), "channel receive: %s", instead["wait"])
			}
		case *ast.SendStmt:
			if !seen[n] {
				w.object("wait", n.Pos(), "channel send: %s", instead["wait"])
			}
		case *ast.RangeStmt:
			if t := w.info.Types[n.X].Type; t != nil {
				if _, ok := t.Underlying().(*types.Chan); ok {
					w.object("wait", n.Pos(), "range over a channel: %s", instead["wait"])
				}
			}
		}
	})
}

func hasDefault(s *ast.SelectStmt) bool {
	for _, c := range s.Body.List {
		if c.(*ast.CommClause).Comm == nil {
			return true
		}
	}
	return false
}

// markSeen marks the send or receive that a select's case consists of. What lies deeper in it, such as a
// receive that computes the value to send, still waits.
func markSeen(seen map[ast.Node]bool, comm ast.Stmt) {
	switch s := comm.(type) {
	case *ast.SendStmt:
		seen[s] = true
	case *ast.ExprStmt:
		seen[ast.Unparen(s.X)] = true
	case *ast.AssignStmt:
		seen[ast.Unparen(s.Rhs[0])] = true
	}
}
