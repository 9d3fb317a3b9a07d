package lint

import (
	"go/ast"
	"strings"
)

// bugMark begins the comment that justifies a panic: which bug of ours it would be.
const bugMark = "// bug:"

// panics objects to a panic without a comment "// bug: ..." on its line or the line before. Input, the network
// and a peer's death are errors; a panic is for what only a bug of ours can bring about.
func (w *walk) panics() {
	for _, src := range w.files {
		if src.tree == nil {
			continue
		}
		marked := map[int]bool{}
		for _, group := range src.tree.Comments {
			// A comment of several lines counts by its last, the one above the panic.
			if first := group.List[0].Text; strings.HasPrefix(first, bugMark) && len(first) > len(bugMark)+1 {
				marked[w.fset.Position(group.End()).Line] = true
			}
		}
		ast.Inspect(src.tree, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && w.builtin(call.Fun, "panic") {
				if line := w.fset.Position(call.Pos()).Line; !marked[line] && !marked[line-1] {
					w.object("panic", call.Pos(), "panic without a reason: return an error, use invariants.Check, or say "+
						"which bug of ours it is in a comment %q", bugMark+" …")
				}
			}
			return true
		})
	}
}
