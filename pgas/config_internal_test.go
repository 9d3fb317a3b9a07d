package pgas

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMisspelled(t *testing.T) {
	require.Empty(t, misspelled([]string{
		"HOME=/", "PGAS_TRANSPORT=tcp", "PGAS_JOB=x", "PGAS_TEST_ANYTHING=1", "PGAS_REQUIRE=verbs", "PGAS_RANK=0", "XPGAS_STATS=1", "PGAS=1", "PMI_RNAK=1",
	}))
	require.Equal(t, []string{
		"PGAS_NOSUCH is no variable of the library, and is ignored; pgasrun info lists those that there are",
		"PGAS_TRANSPROT is no variable of the library, and is ignored; is PGAS_TRANSPORT meant?",
		"PGAS_TREACE is no variable of the library, and is ignored; is PGAS_TRACE meant?",
	}, misspelled([]string{"PGAS_TRANSPROT=tcp", "PGAS_NOSUCH=1", "PGAS_NOSUCH=2", "PGAS_TREACE="}))
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
