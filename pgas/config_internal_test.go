package pgas

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/bootstrap"
)

func TestMisspelled(t *testing.T) {
	require.Empty(t, misspelled([]string{
		"HOME=/", "PGAS_TRANSPORT=tcp", "PGAS_JOB=x", "PGAS_TEST_ANYTHING=1", "PGAS_REQUIRE=verbs", "PGAS_RANK=0", "XPGAS_STATS=1", "PGAS=1", "PMI_RNAK=1",
	}))
	require.Equal(t, []string{
		"PGAS_FOO is no variable of the library, and is ignored; pgasrun info lists those that there are", // and no misspelled PGAS_JOB
		"PGAS_NOSUCH is no variable of the library, and is ignored; pgasrun info lists those that there are",
		"PGAS_TRANSPROT is no variable of the library, and is ignored; is PGAS_TRANSPORT meant?",
		"PGAS_TREACE is no variable of the library, and is ignored; is PGAS_TRACE meant?",
	}, misspelled([]string{"PGAS_TRANSPROT=tcp", "PGAS_NOSUCH=1", "PGAS_NOSUCH=2", "PGAS_TREACE=", "PGAS_FOO=1"}))
	require.Equal(t, "PGAS_REG", nearest("PGAS_RG", []string{"PGAS_JOB", "PGAS_REG"}))
}

// TestNegativeSettings: what no variable may say is refused of a program's configuration, too.
func TestNegativeSettings(t *testing.T) {
	for name, c := range map[string]Config{
		"PGAS_NODES=0,-1":          {Nodes: []int{0, -1}},
		"PGAS_START_TIMEOUT=-1s":   {StartTimeout: -time.Second},
		"PGAS_FAILURE_TIMEOUT=-1s": {FailureTimeout: -time.Second},
		"PGAS_MAX_PINNED=-1":       {MaxPinned: -1},
		"PGAS_REG_LIMIT=-1":        {RegLimit: -1},
		"PGAS_REG_THRESHOLD=-1":    {RegThreshold: -1},
		"PGAS_EAGER_PERCENT=-1":    {EagerPercent: -1},
		"PGAS_SOFT_LATENCY=-1s":    {SoftLatency: -time.Second},
		"PGAS_SOFT_BANDWIDTH=-1":   {SoftBandwidth: -1},
	} {
		_, err := configOf(&c)
		require.ErrorIs(t, err, ErrConfig, name)
		require.ErrorContains(t, err, name)
	}
	_, err := configOf(&Config{Nodes: []int{0, 0, 2}, Leases: -1})
	require.NoError(t, err)
}

// TestHugeThreshold: what is too much is told by its own name, with what would do.
func TestHugeThreshold(t *testing.T) {
	_, err := FromEnvironment([]string{"PGAS_REG_THRESHOLD=2T"})
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "PGAS_REG_THRESHOLD=2199023255552: want at most 1099511627776 (1T)")
	require.NotContains(t, err.Error(), "PGAS_REG_LIMIT")
	_, err = FromEnvironment([]string{"PGAS_REG_THRESHOLD=1T"})
	require.NoError(t, err)
}

// TestManyNodes: a list that no card has room for is refused, and one that is as long as it may be has room.
func TestManyNodes(t *testing.T) {
	_, err := FromEnvironment([]string{"PGAS_NODES=0" + strings.Repeat(",1", 39_999)})
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "PGAS_NODES: found 40000 nodes in 79999 characters, want 60000 characters at most")
	c, err := FromEnvironment([]string{"PGAS_NODES=0" + strings.Repeat(",1", 29_999), "PGAS_FAILURE_TIMEOUT=2562047h47m16.854775807s", "PGAS_CHECK=races,declared"})
	require.NoError(t, err)
	require.NoError(t, newCard(c.shared(), bootstrap.ThisHost(), c.part(1), nil, nil).check())
}

func TestChanges(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "ab", 1}, {"abc", "xbc", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1},
	} {
		require.Equal(t, c.want, changes(c.a, c.b), "%q %q", c.a, c.b)
		require.Equal(t, c.want, changes(c.b, c.a), "%q %q", c.b, c.a)
	}
}

func TestIdleDevice(t *testing.T) {
	c := Config{Device: "mlx5_0"}
	require.Contains(t, c.idleDevice("soft"), "PGAS_DEVICE=mlx5_0 is not used: soft, the transport of this job, has no devices")
	require.NotEmpty(t, c.idleDevice(c.transportOn(1, nil)), "on one node")
	require.Empty(t, c.idleDevice("tcp"))
	require.Empty(t, c.idleDevice(c.transportOn(2, nil)))
	require.Empty(t, (&Config{}).idleDevice("soft"))
}

// TestTooLittleToRegister: a limit into which no large transfer fits is told at the start, with what would do.
func TestTooLittleToRegister(t *testing.T) {
	for _, limit := range []int64{1, 4096, 16<<10 - 1} {
		line := (&Config{RegLimit: limit}).tooLittle()
		require.Contains(t, line, fmt.Sprintf("PGAS_REG_LIMIT: found %d, needed 16384 bytes", limit))
		require.Contains(t, line, "PGAS_REG_LIMIT=64M")
	}
	require.Contains(t, (&Config{RegLimit: 64 << 10, RegThreshold: 1 << 20}).tooLittle(), "needed 1048576")
	require.Contains(t, (&Config{RegLimit: 100, RegThreshold: 10}).tooLittle(), fmt.Sprintf("needed %d bytes", os.Getpagesize()), "nothing smaller than a page can be registered")
	require.Contains(t, (&Config{RegLimit: 4096}).tooLittle(), "all are copied, which is right but slow")
	require.Contains(t, (&Config{RegLimit: 4096, Reg: "leavepinned-noevict"}).tooLittle(), "all fail, since PGAS_REG=leavepinned-noevict never copies")
	for _, c := range []Config{{}, {RegLimit: 16 << 10}, {RegLimit: 64 << 20}, {RegLimit: 8192, RegThreshold: 8192}} {
		require.Empty(t, c.tooLittle())
	}
}

// TestDescribeDoubts: what Init warns of pgasrun info tells, too.
func TestDescribeDoubts(t *testing.T) {
	var doubts []string
	for _, f := range Describe(t.Context(), []string{"PGAS_REG_LIMIT=64", "PGAS_TRANSPROT=tcp"}, 2) {
		if f.Value == "doubtful" {
			doubts = append(doubts, f.Note)
		}
	}
	require.Len(t, doubts, 2)
	require.Contains(t, doubts[0], "is PGAS_TRANSPORT meant?")
	require.Contains(t, doubts[1], "PGAS_REG_LIMIT: found 64, needed")
}

// TestFolderForFiles: the ranks' folder is made where its own is there, and nothing is made of a path that was misspelled.
func TestFolderForFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, makeFolder(filepath.Join(dir, "new")))
	require.NoError(t, makeFolder(filepath.Join(dir, "new")), "another rank comes")
	require.ErrorContains(t, makeFolder(filepath.Join(dir, "nosuch", "x")), "a folder that is there")
	require.NoDirExists(t, filepath.Join(dir, "nosuch"))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, makeFolder(file), "is no folder")
}

// TestFoldersOfAnotherJob: only the ranks of the job that pgasrun has set the environment for write to its folders.
func TestFoldersOfAnotherJob(t *testing.T) {
	for _, c := range []struct {
		environ []string
		job     string
		kept    bool
	}{
		{[]string{"PGAS_JOB=a"}, "a", true},
		{nil, "alone-1", true},
		{[]string{"PGAS_JOB=a"}, "alone-1", false},
		{[]string{"PGAS_JOB=a"}, "kvs_7", false},
	} {
		got, err := FromEnvironment(append(c.environ, "PGAS_TRACE=t", "PGAS_TIMELINE=l"))
		require.NoError(t, err)
		lines := got.noRankOf(c.job)
		if c.kept {
			require.Empty(t, lines)
			require.Equal(t, []string{"t", "l"}, []string{got.Trace, got.Timeline})
			continue
		}
		require.Len(t, lines, 2)
		require.Empty(t, got.Trace+got.Timeline)
		require.Empty(t, got.noRankOf(c.job), "once")
	}
}
