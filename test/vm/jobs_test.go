package vm

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// part is what one part of jobs.sh printed, and its status.
type part struct {
	text string
	code int
}

// parts takes the output of jobs.sh apart.
func parts(t *testing.T, out string) map[string]part {
	t.Helper()
	all := map[string]part{}
	for _, m := range regexp.MustCompile(`(?ms)^=== part (\S+)\n(.*?)^=== ended \S+ (\d+)$`).FindAllStringSubmatch(out, -1) {
		code, err := strconv.Atoi(m[3])
		require.NoError(t, err)
		all[m[1]] = part{m[2], code}
	}
	return all
}

// ofPassed is a line on a test that passed, or begins. A suite prints hundreds, and those that failed are looked for.
var ofPassed = regexp.MustCompile(`(?m)^\s*(=== (RUN|NAME|CONT|PAUSE)|--- PASS:) .*\n`)

// exampleWords are what examples that only the long part runs print among other words.
var exampleWords = map[string]string{
	"ring": "the token went round 20 times", "heat": "(?s)on 3 ranks.*verified: ", "stencil3d": "(?s)on 3 ranks.*verified: ", "gups": "(?s)by 3 ranks.*verified: ",
	"isx": "(?s)on 3 ranks.*verified: sorted", "transpose": "(?s)by 3 ranks.*verified: ", "p2p": "(?s)by 3 ranks.*verified: ",
	"matmul": "verified: ", "histogram": "(?s)by 3 ranks.*verified: ", "cg": "(?s)by 3 ranks.*verified: ", "indexgather": "(?s)by 3 ranks.*verified: ", "words": "(?s)by 3 ranks.*verified: ",
}

// jobPrograms builds what jobs.sh runs into one folder.
func jobPrograms(t *testing.T, length string) string {
	t.Helper()
	dir := t.TempDir()
	tests := []string{"gopgas/pgas", "gopgas/internal/proto"}
	programs := []string{"gopgas/cmd/pgasrun", "gopgas/examples/kmer", "gopgas/test/vm/testdata/rank", "gopgas/test/vm/testdata/stale"}
	if length == "long" {
		tests = append(tests, "gopgas/window", "gopgas/sync", "gopgas/sync/coll", "gopgas/pgas/hashmap", "gopgas/pgas/algo", "gopgas/pgas/grid", "gopgas/pgas/rpc",
			"gopgas/test/races", "gopgas/test/model")
		for name := range exampleWords {
			programs = append(programs, "gopgas/examples/"+name)
		}
	}
	BuildAll(t, dir, tests...)
	Programs(t, dir, programs...)
	require.NoError(t, os.CopyFS(filepath.Join(dir, "testdata"), os.DirFS("../../window/testdata")))
	require.NoError(t, os.CopyFS(filepath.Join(dir, "races"), os.DirFS("../races"))) // its reports name the lines of these
	begin(t, filepath.Join(dir, "genome.fa"))
	script, err := os.ReadFile("testdata/jobs.sh")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jobs.sh"), script, 0o755))
	return openToAll(t, dir)
}

// seconds says what took how long, of what took some.
func seconds(all map[string]part) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if m := regexp.MustCompile(`(?m)^took ([1-9]\d*) s$`).FindStringSubmatch(all[name].text); m != nil {
			list = append(list, name+" "+m[1]+" s")
		}
	}
	return strings.Join(list, ", ")
}

// begin writes the first lines of a genome.
func begin(t *testing.T, name string) {
	t.Helper()
	genome, err := os.ReadFile("../../examples/kmer/lambda.fa")
	require.NoError(t, err)
	lines := bytes.SplitAfter(genome, []byte("\n"))
	require.NoError(t, os.WriteFile(name, bytes.Join(lines[:15], nil), 0o644))
}

// openToAll lets any user go into dir, which the folders of tests do not.
func openToAll(t *testing.T, dir string) string {
	t.Helper()
	for d := dir; strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
		info, err := os.Stat(d)
		require.NoError(t, err)
		require.NoError(t, os.Chmod(d, info.Mode().Perm()|0o055))
	}
	return dir
}

// TestJobs runs jobs of processes over the NIC, what stands above it with ranks as goroutines, and what goes wrong: one
// boot for all.
func TestJobs(t *testing.T) { testJobs(t, "short", 6*time.Minute) }

// TestVerbsJobs is TestJobs with the tests of these and more suites that go over the NIC, those of windows also under the kernel's limit, four ranks, flaps of the link, more
// windows, random traces under every protocol, a third of the programs with races, and all examples.
func TestVerbsJobs(t *testing.T) {
	long(t)
	testJobs(t, "long", 30*time.Minute) // most of which only a slow or busy machine needs
}

func testJobs(t *testing.T, length string, limit time.Duration) {
	dir := jobPrograms(t, length)
	memory := map[string]int{"long": 4096}[length] // two ranks of a gigabyte each, and what else it has read and written
	r := Run(t, Machine{Timeout: limit, Memory: memory}, "bash", filepath.Join(dir, "jobs.sh"), length, dir, strconv.Itoa(int(limit.Seconds())-40))
	all := parts(t, r.Stdout)
	t.Log(seconds(all))
	well := func(name string, words ...string) {
		t.Helper()
		p, ok := all[name]
		require.True(t, ok, "%s was not run\n%s%s", name, last(r.Stdout), last(r.Stderr))
		require.Zero(t, p.code, "%s: %s", name, ofPassed.ReplaceAllString(p.text, ""))
		for _, w := range words {
			require.Regexp(t, w, p.text, name)
		}
	}
	ill := func(name string, words ...string) {
		t.Helper()
		p, ok := all[name]
		require.True(t, ok, "%s was not run\n%s%s", name, last(r.Stdout), last(r.Stderr))
		require.NotZero(t, p.code, "%s: %s", name, p.text)
		for _, w := range words {
			require.Regexp(t, w, p.text, name)
		}
	}
	passed := func(name string) {
		t.Helper()
		well(name, `(?m)^PASS$`, `--- PASS: `)
		require.NotContains(t, all[name].text, "--- SKIP", "%s left tests out", name)
	}
	well("info", `rxe0:1 +usable +10\.9\.0\.1; Ethernet, MTU \d+, messages up to 8\.0 MiB, \d+ registrations`)
	well("two", "rank 0 of 2 over verbs", "rank 1 of 2 over verbs")
	well("auto", "rank 0 of 2 over verbs", "rank 1 of 2 over verbs")
	well("four", "rank 3 worked for")
	well("flap", "rank 0 worked for", "rank 1 worked for")
	well("alone", "rank 0 worked for")
	ill("killed", `(?s)rank 0 was told: .*\(rank 2\): .*peer is gone`, `(?s)rank 1 was told: .*\(rank 2\): .*peer is gone`,
		"rank 0 goes on", "rank 1 goes on", "rank 2 on vm was killed by SIGKILL")
	require.NotContains(t, all["killed"].text, "refused the access", "the NIC of a dead process is not its word")
	well("budget", `rank 0 reached all of 20000000 bytes`, `rank 1 reached all of 20000000 bytes`)
	ill("memlock64K", `found 64\.0 KiB that it may register .*RLIMIT_MEMLOCK.* needed \d+\.\d [KM]iB in all.*ulimit -l unlimited`)
	well("memlock8M", `rank 0 reached all of 10000000 bytes, \d{4} KiB pinned`)
	well("stalepinned", `1048576 of 1048576 bytes are as sent, 0 are the dead slice's`, `given up \d{4,} KiB, pinned \d{4,} KiB fewer`)
	well("stalebare", `where the old one did: true`, `0 of 1048576 bytes are as sent, 1048576 are the dead slice's`, `1 registrations, 1 hits`,
		`given up 1024 KiB, pinned 1024 KiB fewer`)
	well("kmer", "verified by a serial count", `verbs +atomic +\d+`)
	windows := map[string]string{"short": "20", "long": "10000"}[length]
	well("churn", "rank 0 made "+windows+" windows", "rank 1 made "+windows+" windows")
	suites := []string{"pgas"}
	if length == "long" {
		suites = append(suites, "window", "sync")
	} else {
		passed("keys") // the long part has these tests in proto
	}
	for _, suite := range suites {
		passed(suite)
		require.Contains(t, all[suite].text, "/verbs", "%s ran nothing over the NIC", suite)
	}
	if length == "long" {
		for _, suite := range []string{"coll", "hashmap", "rpc", "algo", "grid", "races", "model"} {
			passed(suite)
			require.Contains(t, all[suite].text, "/verbs", "%s ran nothing over the NIC", suite)
		}
		for name, words := range exampleWords {
			well(name, words)
		}
		for _, way := range []string{"bounce", "bypass"} {
			well(way, "rank 0 got 200 answers", "rank 1 got 200 answers")
			require.Len(t, regexp.MustCompile(`"verbs":.*?"`+way+`":\{"ops":[2-9]\d\d`).FindAllString(all[way].text, -1), 2, "each rank's way: %s", all[way].text)
			require.Regexp(t, `(?m)^sent \d{4,}$`, all[way].text, "packets of a thousand of operations")
		}
		passed("proto")
		passed("windowlimited")
		for _, world := range []string{"/verbs-2", "/verbs-3"} {
			require.Contains(t, all["windowlimited"].text, world, "no such world ran over the NIC")
		}
		passed("gigabyte")
		require.Contains(t, all["gigabyte"].text, "--- PASS: TestGigabyte/verbs/allocate")
		for i := range 4 {
			well(fmt.Sprintf("flap%d", i+1), "rank 0 worked for", "rank 1 worked for")
			well(fmt.Sprintf("alone%d", i+1), "rank 0 worked for")
		}
	}
	var sent int
	_, err := fmt.Sscanf(all["counters"].text, "sent %d", &sent)
	require.NoError(t, err)
	require.Greater(t, sent, 10_000, "packets that the NIC has sent")
	ill("none", "PGAS_TRANSPORT=verbs cannot be used here: verbs: .*no RDMA device")
}
