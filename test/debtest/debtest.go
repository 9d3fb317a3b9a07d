// Package debtest gets the foreign programs that tests compare with or run under: it finds them on this machine or
// installs the Debian package that has them. Tests only.
package debtest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
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
	_, err := exec.LookPath("apt-get")
	if why := cannot(packages, os.Geteuid(), err == nil); why != "" {
		t.Fatal(why)
	}
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

// cannot says why packages cannot be installed by this user on this machine, and what to do; "": they can be.
func cannot(packages []string, user int, hasApt bool) string {
	what := fmt.Sprintf("this test needs what the Debian packages %s have, and does not find it here", strings.Join(packages, " "))
	switch {
	case !hasApt:
		return what + "; there is no apt-get: install their like by hand (tools/install-test-deps.sh lists all that the tests need)"
	case user != 0:
		return what + "; only root can install them: sudo apt-get install " + strings.Join(packages, " ") +
			" (sudo sh tools/install-test-deps.sh installs all that the tests need)"
	}
	return ""
}

func apt(args []string) ([]byte, error) {
	// Tests of several packages may install at once: each waits for the others.
	cmd := exec.Command("apt-get", append([]string{"-o", "DPkg::Lock::Timeout=180"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return cmd.CombinedOutput()
}
