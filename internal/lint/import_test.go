package lint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMayImport(t *testing.T) {
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"pgas", "window", true},
		{"window", "pgas", false}, // an arrow up
		{"window", "sync", true},
		{"window", "eager", false}, // past proto
		{"internal/proto", "eager", true},
		{"eager", "internal/proto", false},
		{"firehose", "transport", false}, // pure accounting
		{"regmgr", "firehose", true},
		{"transport/tcp", "internal/softnic", true},
		{"transport/verbs", "internal/softnic", false},
		{"transport/tcp", "transport/soft", false}, // a provider beside it
		{"eager", "internal/mem", true},
		{"internal/mem", "internal/cost", false}, // a leaf
		{"examples/heat", "pgas", true},
		{"examples/heat", "internal/mem", false}, // not even a leaf
		{"test/model", "internal/proto", true},
		{"test/model", "internal/lint", true},
		{"cmd/pgasrun", "internal/launch", true},
		{"internal/launch", "pgas", false},
		{"pgas", "internal/nowhere", false},
		{"internal/nowhere", "transport", false},
		{"pgas/pgastest", "internal/launch", true},
	} {
		require.Equal(t, c.ok, mayImport(rooms, c.from, c.to), "%s -> %s", c.from, c.to)
	}
}

func TestOurs(t *testing.T) {
	rel, ok := ours("gopgas", "gopgas/sync")
	require.True(t, ok)
	require.Equal(t, "sync", rel)
	_, ok = ours("gopgas", "sync")
	require.False(t, ok, "the standard sync is not ours")
	_, ok = ours("gopgas", "gopgasx/sync")
	require.False(t, ok)
}

// TestLoadFindsEveryTwin loads a module of its own from disk: files for other platforms are read, test files
// are not bound by the import table, and another package's generator in the folder is left alone.
func TestLoadFindsEveryTwin(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	write("go.mod", "module gopgas\n\ngo 1.26\n")
	write("transport/a.go", "// Package transport is here.\npackage transport\n")
	write("firehose/a.go", "// Package firehose counts.\npackage firehose\n")
	write("firehose/a_plan9.go", "package firehose\n\nimport _ \"gopgas/transport\"\n")
	write("firehose/a_test.go", "package firehose\n\nimport _ \"gopgas/transport\"\n")
	write("firehose/gen.go", "//go:build ignore\n\npackage main\n\nimport _ \"gopgas/transport\"\n")
	write("attic/a.go", "// Package attic is new.\npackage attic\n")

	module, pkgs, err := Load(dir)
	require.NoError(t, err)
	var rules, files []string
	for _, f := range Check(module, pkgs) {
		rules = append(rules, f.Rule)
		files = append(files, f.File)
	}
	require.Equal(t, []string{"room", "doc", "import"}, rules)
	require.Equal(t, []string{"attic/a.go", "firehose/a.go", "firehose/a_plan9.go"}, files)
}
