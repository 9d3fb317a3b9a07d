// Package peers compares the library with what the machine gives to plain C and to MPI: C programs with the loops of
// cmd/pgasbench, and run.sh, which measures all by turns. The test keeps the programs honest: they build, their results
// are right, and they have the rows that pgasbench has.
package peers

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/test/debtest"
)

// short is a run that measures nothing well.
var short = []string{"REPS=2", "TARGET_MS=1", "UPDATES=640", "BARRIERS=20"}

// output runs a command of this folder and returns what it prints.
func output(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s", cmd, stderr.String())
	return string(out)
}

// rowNames are the first fields of all lines but the first.
func rowNames(text string, sep string) map[string]bool {
	names := map[string]bool{}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if name, _, ok := strings.Cut(line, sep); ok && i > 0 {
			names[name] = true
		}
	}
	return names
}

func TestPeersHaveOurRows(t *testing.T) {
	ours := rowNames(output(t, nil, "go", "run", "../../cmd/pgasbench", "list"), " ")
	require.Contains(t, ours, "put8_same")
	// Plain C has no collectives; and the peers' loops have one thread: to be told of more they would take slower ways in all rows, if they can at all.
	maps.DeleteFunc(ours, func(row string, _ bool) bool {
		return strings.HasPrefix(row, "coll_") || strings.HasSuffix(row, "_many")
	})
	gcc := debtest.Need(t, "gcc", "gcc", "libc6-dev")
	for _, flag := range []string{"-DFULL", "-DORDER"} {
		raw := filepath.Join(t.TempDir(), "raw")
		output(t, nil, gcc, "-O3", "-Wall", "-Wextra", "-Werror", flag, "-o", raw, "c/raw.c")
		require.Equal(t, ours, rowNames(output(t, short, raw, "2"), ","))
		require.Equal(t, map[string]bool{"barrier": true}, rowNames(output(t, short, raw, "4"), ","))
	}
}

func TestMPICH(t *testing.T) {
	mpicc := debtest.Need(t, "mpicc.mpich", "mpich", "libmpich-dev")
	mpirun := debtest.Need(t, "mpirun.mpich", "mpich")
	mpi := filepath.Join(t.TempDir(), "mpi")
	output(t, nil, mpicc, "-O3", "-o", mpi, "c/mpi.c")
	env := append([]string{"ONLY=8"}, short...)
	rows := rowNames(output(t, env, mpirun, "-n", "2", mpi), ",")
	require.Contains(t, rows, "put8_same")
	for row := range rowNames(output(t, nil, "go", "run", "../../cmd/pgasbench", "list"), " ") {
		if strings.HasPrefix(row, "coll_") && strings.Contains(row, "8") {
			require.Contains(t, rows, row)
		}
	}
}

// TestHello: run.sh measures how long a job takes from start to end, ours and others', of two sizes.
func TestHello(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds our programs once more")
	}
	debtest.Need(t, "mpicc.mpich", "mpich", "libmpich-dev")
	table := output(t, []string{"ONLY=hello", "ROUNDS=1", "REPS=2", "PATIENCE=0"}, "./run.sh", "mpich")
	require.Regexp(t, `(?m)^\| \| by \| unit \| ours \| mpich \|$`, table)
	for _, ranks := range []string{"2", "8"} {
		require.Regexp(t, `(?m)^\| hello, `+ranks+` ranks \| start to end \| ms \| [\d.]+ \([\d.]+–[\d.]+\) \| [\d.]+ \(`, table)
	}
}
