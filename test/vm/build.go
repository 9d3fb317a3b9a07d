package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Build compiles the tests of a package for a machine and returns the program's path.
func Build(t testing.TB, pkg string, flags ...string) string {
	t.Helper()
	return compile(t, append([]string{"test", "-c"}, flags...), pkg)
}

// Program compiles a main package for a machine and returns the program's path.
func Program(t testing.TB, pkg string, flags ...string) string {
	t.Helper()
	return compile(t, append([]string{"build"}, flags...), pkg)
}

func compile(t testing.TB, args []string, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(pkg)+".run")
	cmd := exec.CommandContext(t.Context(), "go", append(args, "-ldflags=-s -w", "-o", path, pkg)...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "GOAMD64=v1", "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v made no program: has %s no tests?", cmd.Args, pkg)
	}
	return path
}
