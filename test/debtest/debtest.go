// Package debtest gets the foreign programs that tests compare with or run under: it finds them on this machine or
// installs the Debian package that has them. Tests only.
package debtest

import (
	"os"
	"os/exec"
	"testing"
)

// Need returns the path of program, after installing packages with apt-get where it is absent. The test fails where
// that is not possible: a test that needs a foreign program shows nothing without it.
func Need(t testing.TB, program string, packages ...string) string {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	Install(t, packages...)
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("installed %v, but %s is still absent: %v", packages, program, err)
	}
	return path
}

// Install installs packages with apt-get. The test fails where that is not possible.
func Install(t testing.TB, packages ...string) {
	t.Helper()
	t.Logf("installing %v", packages)
	install := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	out, err := apt(install)
	if err != nil { // perhaps the package lists are missing or old
		if out, err := apt([]string{"update"}); err != nil {
			t.Fatalf("apt-get update, to install %v: %v\n%s", packages, err, out)
		}
		out, err = apt(install)
	}
	if err != nil {
		t.Fatalf("apt-get install %v: %v\n%s", packages, err, out)
	}
}

func apt(args []string) ([]byte, error) {
	// Tests of several packages may install at once: each waits for the others.
	cmd := exec.Command("apt-get", append([]string{"-o", "DPkg::Lock::Timeout=180"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return cmd.CombinedOutput()
}
