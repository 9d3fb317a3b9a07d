package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Build compiles the tests of a package for a machine, with flags for the compiler if there are any, and returns the program's path.
func Build(t testing.TB, pkg string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	compile(t, dir, ".test", slices.Concat([]string{"test", "-c", "-vet=off"}, flags), []string{pkg})
	return filepath.Join(dir, filepath.Base(pkg)+".run")
}

// BuildAll compiles the tests of packages, all at once, into a folder: those of a/b become b.run. It blocks until they are there.
func BuildAll(t testing.TB, dir string, packages ...string) {
	t.Helper()
	compile(t, dir, ".test", []string{"test", "-c", "-vet=off"}, packages)
}

// Program compiles a main package for a machine and returns the program's path.
func Program(t testing.TB, pkg string) string {
	t.Helper()
	dir := t.TempDir()
	Programs(t, dir, pkg)
	return filepath.Join(dir, filepath.Base(pkg)+".run")
}

// Programs compiles main packages, all at once, into a folder: a/b becomes b.run. It blocks until they are there.
func Programs(t testing.TB, dir string, packages ...string) {
	t.Helper()
	compile(t, dir, "", []string{"build"}, packages)
}

// compile has the tool read the module once for all packages, and link on all cores. It puts what it makes of a/b at b with the ending.
func compile(t testing.TB, dir, ending string, args, packages []string) {
	t.Helper()
	made := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", slices.Concat(args, []string{"-ldflags=-s -w", "-o", made + string(filepath.Separator)}, packages)...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "GOAMD64=v1", "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	for _, pkg := range packages {
		name := filepath.Base(pkg)
		if err := os.Rename(filepath.Join(made, name+ending), filepath.Join(dir, name+".run")); err != nil {
			t.Fatalf("%v: has %s no tests? %v", cmd.Args, pkg, err)
		}
	}
}
