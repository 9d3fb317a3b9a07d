package docs_test

import (
	"go/ast"
	"go/parser"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFirstProgram: the program of the README and the one that begins the documentation of package pgas compile.
func TestFirstProgram(t *testing.T) {
	var readme []string
	for _, b := range blocks(text(t, "README.md")) {
		if b.kind == "go" {
			readme = append(readme, strings.Join(b.text, "\n"))
		}
	}
	require.Len(t, readme, 1, "the README has one program")
	_, doc, found := strings.Cut(text(t, "pgas/doc.go"), "//\tfunc main() {")
	require.True(t, found)
	doc, _, found = strings.Cut(doc, "//\t}\n//\n")
	require.True(t, found)
	imports := compiled(t, []string{"pgas"})
	for name, program := range map[string]string{"README.md": readme[0], "pgas/doc.go": "func main() {" + strings.ReplaceAll(doc, "//\t", "") + "}"} {
		file, err := parser.ParseFile(fset, name, "package main\nimport (\"context\"; \"fmt\"; \"gopgas/pgas\")\n"+program, 0)
		require.NoError(t, err)
		config := types.Config{Importer: imports}
		_, err = config.Check("main", fset, []*ast.File{file}, nil)
		require.NoError(t, err)
	}
}

// TestCommandsName: what a document tells to run with ./ in front of it exists.
func TestCommandsName(t *testing.T) {
	path := regexp.MustCompile(`(?:pgasrun|go run|go test|go build|go install)[^\n]*? (\./(?:cmd|examples|docs|test)/[\w./-]*\w)`)
	seen := 0
	for _, name := range documents(t) {
		for _, m := range path.FindAllStringSubmatch(text(t, name), -1) {
			seen++
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(m[1])))
			require.NoError(t, err, name)
		}
	}
	require.Greater(t, seen, 30)
}

// TestTenMinutes: what the README shows of its first change is what the tutorial's program prints, and what is to be changed stands there.
func TestTenMinutes(t *testing.T) {
	const program, before, after = "docs/tutorial/02-put", "(w.Rank() + 1) % w.Size()", "(w.Rank() + 2) % w.Size()"
	readme, tutorial := text(t, "README.md"), text(t, program+"/README.md")
	_, shown, found := strings.Cut(readme, "$ go run ./cmd/pgasrun -n 4 ./"+program+"\n")
	require.True(t, found)
	shown, _, _ = strings.Cut(shown, "```")
	require.Contains(t, tutorial, "$ pgasrun -n 4 ./"+program+"\n"+shown)
	require.Contains(t, readme, "`"+after+"`")
	require.Equal(t, 1, strings.Count(text(t, program+"/main.go"), before))
}
