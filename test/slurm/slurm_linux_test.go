package slurm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// build compiles programs of this module, all at once, and returns what gives the path of each.
func build(t *testing.T, packages ...string) (path func(name string) string) {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", append([]string{"build", "-ldflags=-s -w", "-o", dir}, packages...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return func(name string) string { return filepath.Join(dir, name) }
}

// TestSrun runs examples, and one that fails, as steps of one cluster.
func TestSrun(t *testing.T) {
	c := start(t)
	path := build(t, "gopgas/examples/hello", "gopgas/examples/kmer", "gopgas/test/failure/testdata/rank", "gopgas/cmd/pgasrun")
	hello, kmer, rank := path("hello"), path("kmer"), path("rank")
	genome, err := filepath.Abs("../../examples/kmer/lambda.fa")
	require.NoError(t, err)
	text, err := os.ReadFile(genome)
	require.NoError(t, err)
	begin := filepath.Join(t.TempDir(), "begin.fa") // for the NIC, which takes many microseconds for each
	require.NoError(t, os.WriteFile(begin, bytes.Join(bytes.SplitAfter(text, []byte("\n"))[:41], nil), 0o600))

	t.Run("hello", func(t *testing.T) {
		// Three tasks on the first node and one on the second: what a list of tasks for each node is good at getting wrong.
		for _, how := range [][]string{{"--mpi=pmi2", "-N2", "-n4"}, {"--mpi=pmi2", "-N1", "-n1"}, {"--mpi=pmi2", "-N2", "-n5", "-m", "cyclic"}} {
			out, errOut, code := c.srun(t, nil, append(how, hello)...)
			require.Zero(t, code, "%v: %s%s", how, out, errOut)
			ranks := strings.TrimPrefix(how[2], "-n")
			lines := regexp.MustCompile(`(?m)^rank \d of `+ranks+` on node 0 `).FindAllString(out, -1)
			require.Len(t, lines, int(ranks[0]-'0'), out)
			require.Contains(t, out, "all "+ranks+" ranks are on the roll")
		}
	})
	t.Run("by variable", func(t *testing.T) {
		out, errOut, code := c.srun(t, []string{"SLURM_MPI_TYPE=pmi2"}, "-n2", hello)
		require.Zero(t, code, "%s%s", out, errOut)
		require.Contains(t, out, "all 2 ranks are on the roll")
	})
	t.Run("kmer", func(t *testing.T) {
		for _, way := range []struct {
			env          []string
			genome, want string
		}{{nil, genome, "48472"}, {[]string{"PGAS_LOCAL=off", "PGAS_TRANSPORT=tcp"}, begin, "2770"}} {
			out, errOut, code := c.srun(t, way.env, "--mpi=pmi2", "-N2", "-n3", kmer, way.genome)
			require.Zero(t, code, "%v: %s%s", way.env, out, errOut)
			require.Contains(t, out, way.want+" k-mers of 31 letters, "+way.want+" of them distinct, counted by 3 ranks")
			require.Contains(t, out, "verified by a serial count")
		}
	})
	t.Run("without PMI", func(t *testing.T) {
		out, errOut, code := c.srun(t, nil, "--mpi=none", "-n2", hello)
		require.NotZero(t, code, "%s%s", out, errOut)
		require.Empty(t, out)
		for _, task := range []string{"task 0 of 2", "task 1 of 2"} {
			require.Contains(t, errOut, "started by srun as "+task+" without PMI")
		}
		require.Contains(t, errOut, "start it with srun --mpi=pmi2, or set SLURM_MPI_TYPE=pmi2")
		// A step of one task without PMI is a world of one rank.
		out, errOut, code = c.srun(t, nil, "--mpi=none", "-n1", hello)
		require.Zero(t, code, "%s%s", out, errOut)
		require.Contains(t, out, "all 1 ranks are on the roll")
	})
	t.Run("agents", func(t *testing.T) {
		// The launcher runs in an allocation, takes its hosts, and has Slurm start its agents.
		out, errOut, code := c.run(t, nil, "salloc", "-N2", "-n2", path("pgasrun"), "--launcher", "srun", "--ppn", "2", "--prefix", "%h: ", hello)
		require.Zero(t, code, "%s%s", out, errOut)
		for _, line := range []string{"n1: rank 1 of 4 on node 0", "n2: rank 2 of 4 on node 0", "n1: all 4 ranks are on the roll\n"} {
			require.Contains(t, out, line)
		}
	})
	t.Run("a rank dies", func(t *testing.T) {
		// Slurm by itself lets the others wait: it is the library that tells them.
		out, errOut, code := c.srun(t, nil, "--mpi=pmi2", "-N2", "-n4", rank, "kill", "barrier")
		require.NotZero(t, code, "%s%s", out, errOut)
		require.Equal(t, 3, strings.Count(out, "was told"), "%s%s", out, errOut)
	})
}
