package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the module's folder as seen from this package.
const root = "../.."

// TestTree runs all rules over the module.
func TestTree(t *testing.T) {
	abs, err := filepath.Abs(root)
	require.NoError(t, err)
	module, pkgs, err := Load(abs)
	require.NoError(t, err)
	require.Equal(t, "gopgas", module)

	seen := map[string]*Package{}
	for _, p := range pkgs {
		seen[p.Path] = p
	}
	for _, must := range []string{"internal/lint", "internal/mem", "transport"} {
		require.Contains(t, seen, must, "the tree was not read whole")
		require.NotEmpty(t, seen[must].files)
	}
	for _, f := range Check(module, pkgs) {
		t.Error(f)
	}
}

// TestTreeWords reads every tracked file.
func TestTreeWords(t *testing.T) {
	names, err := tracked(root)
	require.NoError(t, err)
	require.Contains(t, names, "internal/lint/words.go")
	found, err := Words(root)
	require.NoError(t, err)
	for _, f := range found {
		t.Error(f)
	}
}

// TestArchitecture: every room has its line in the document that the table's comment names.
func TestArchitecture(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	require.NoError(t, err)
	for _, r := range rooms {
		if at := regexp.MustCompile(`(?m)(^|[^\w/])` + regexp.QuoteMeta(strings.TrimSuffix(r.path, "/*")) + `($|[^\w/])`); !at.Match(b) {
			t.Errorf("%s has no line in docs/architecture.md", r.path)
		}
	}
}

// TestTable checks that the import table is what its comment says (L2).
func TestTable(t *testing.T) {
	at := map[string]int{}
	for i, r := range rooms {
		require.NotContains(t, at, r.path, "two lines for one room")
		at[r.path] = i
		found, err := filepath.Glob(filepath.Join(root, r.path, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, found, "%s is in the table and has no code", r.path)
	}
	for i, r := range rooms {
		for want := range strings.FieldsSeq(r.imports) {
			if want == leaves || want == anything {
				continue
			}
			require.Contains(t, at, want, "%s imports a room that is not in the table", r.path)
			require.Greater(t, at[want], i, "%s imports %s, which stands above it", r.path, want)
		}
		if isLeaf(rooms, i) {
			require.Contains(t, []string{"", "internal/invariants"}, r.imports, "leaf %s imports something of ours", r.path)
		}
	}
}

// TestGrants checks that every grant names a rule that some test sees objecting, rooms of the table and a reason.
func TestGrants(t *testing.T) {
	rules := map[string]bool{}
	for _, c := range cases {
		rules[c.rule] = true
	}
	for _, g := range grants {
		require.True(t, rules[g.rule], "grant for an unknown rule %q", g.rule)
		require.NotEmpty(t, g.reason)
		for r := range strings.FieldsSeq(g.rooms) {
			r, _, _ = strings.Cut(r, ":")
			known := r == "cmd/*"
			for _, line := range rooms {
				known = known || r == line.path
			}
			require.True(t, known, "grant of %s to %s, which is no room", g.rule, r)
		}
	}
	for pkg, n := range budgets {
		require.GreaterOrEqual(t, find(rooms, pkg), 0)
		require.Greater(t, n, nameBudget)
	}
}
