package crew

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFolderThatMayNotBeEntered: it is what the error is about, and not the program, which may be run. Root may enter any, so somebody else tries.
func TestFolderThatMayNotBeEntered(t *testing.T) {
	const envFolder = "CREW_TEST_FOLDER"
	if dir := os.Getenv(envFolder); dir != "" {
		err := CheckDir(dir)
		fmt.Println("not executable:", errors.Is(err, ErrNotExecutable), err)
		return
	}
	public, err := os.MkdirTemp("", "crew-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(public) })
	require.NoError(t, os.Chmod(public, 0o755))
	locked := filepath.Join(public, "locked")
	require.NoError(t, os.Mkdir(locked, 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	b, err := os.ReadFile(self)
	require.NoError(t, err)
	self = filepath.Join(public, "crew.test")
	require.NoError(t, os.WriteFile(self, b, 0o755))
	cmd := exec.Command(self, "-test.run=^TestFolderThatMayNotBeEntered$")
	cmd.Env, cmd.Dir = append(os.Environ(), envFolder+"="+locked), public
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "not executable: false working folder of the ranks: enter "+locked+": permission denied")
}

// TestFolderThatVanishes: whoever takes the ranks' folder away while they are being started hears of that, and not that the program is none.
func TestFolderThatVanishes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	require.NoError(t, os.Mkdir(dir, 0o700))
	p := Plan{Job: "job", Size: 1000, Count: 1000, Argv: []string{"rmdir", dir}, Dir: dir}
	_, err := Start(p, func(int) Streams { return Streams{} }, nil)
	require.ErrorContains(t, err, "working folder of the ranks: stat "+dir)
	require.NotErrorIs(t, err, ErrNotExecutable)
}
