package lint

import (
	"go/ast"
	"go/types"
	"strconv"
)

// selectors says which rule a name of an imported package falls under.
var selectors = map[string]map[string]string{
	"time": {
		"Now": "clock", "Since": "clock", "Until": "clock", "Sleep": "clock", "After": "clock", "AfterFunc": "clock",
		"Tick": "clock", "NewTimer": "clock", "NewTicker": "clock",
	},
	"context": {
		"WithTimeout": "clock", "WithTimeoutCause": "clock", "WithDeadline": "clock", "WithDeadlineCause": "clock",
		"AfterFunc": "wait",
	},
	"os": {
		"Getenv": "env", "LookupEnv": "env", "Environ": "env", "ExpandEnv": "env", "Setenv": "env", "Unsetenv": "env",
		"Clearenv": "env", "Stdout": "print", "Stderr": "print",
	},
	"syscall": {
		"Getenv": "env", "Environ": "env", "Setenv": "env", "Unsetenv": "env", "Clearenv": "env",
		"Stdout": "print", "Stderr": "print",
	},
	"golang.org/x/sys/unix": {
		"Getenv": "env", "Environ": "env", "Setenv": "env", "Unsetenv": "env", "Clearenv": "env",
		"Stdout": "print", "Stderr": "print",
	},
	"fmt":  {"Print": "print", "Printf": "print", "Println": "print"},
	"sync": {"Cond": "wait", "NewCond": "wait", "WaitGroup": "wait"},
}

// instead is the cure that each rule on imported names offers.
var instead = map[string]string{
	"clock": "below pgas time comes from internal/sched, so that it can be virtual",
	"env":   "below pgas settings come as values; pgas/config.go reads the environment",
	"print": "below cmd nothing logs; return an error",
	"wait":  "below pgas wait through internal/sched, so that the simulator and crowded machines go on",
}

// machine objects to the clock, the environment, logs and output, and to the waits that have a name. A method
// that is a member of a type (a context's Done) is not seen here; waits.go sees what is done with it.
func (w *walk) machine() {
	w.each(func(_ *file, n ast.Node) {
		switch n := n.(type) {
		case *ast.ImportSpec:
			if target, err := strconv.Unquote(n.Path.Value); err == nil && (target == "log" || target == "log/slog") {
				w.object("print", n.Pos(), "import of %s: %s", target, instead["print"])
			}
		case *ast.SelectorExpr:
			pkg, name, ok := w.imported(n)
			if !ok {
				return
			}
			if rule := selectors[pkg][name]; rule != "" {
				w.object(rule, n.Pos(), "%s.%s: %s", pkg, name, instead[rule])
			}
		case *ast.CallExpr:
			if w.builtin(n.Fun, "print") || w.builtin(n.Fun, "println") {
				w.object("print", n.Pos(), "%s: %s", types.ExprString(n.Fun), instead["print"])
			}
		}
	})
}
