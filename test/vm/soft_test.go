package vm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSoftUnderYama runs the soft NIC, and collectives of ranks that map each other's memory, between processes of a user without privileges, whom the kernel lets copy from those
// processes only that allow it (ptrace_scope 1): the ranks do. With 2 nobody may: the NIC's error names the setting, and the collectives do without.
func TestSoftUnderYama(t *testing.T) {
	long(t)
	soft, pgas, sync := Build(t, "gopgas/transport/soft"), Build(t, "gopgas/pgas"), Build(t, "gopgas/sync")
	r := Run(t, Machine{NICs: None, LSM: "yama", Timeout: 4 * time.Minute}, "bash", "-c", `
		scope=/proc/sys/kernel/yama/ptrace_scope
		user() { setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$@"; }
		ulimit -l unlimited
		install -m 755 "$1" /var/tmp/soft.run && install -m 755 "$2" /var/tmp/pgas.run && install -m 755 "$3" /var/tmp/sync.run || exit 7
		set -- /var/tmp/soft.run /var/tmp/pgas.run /var/tmp/sync.run
		echo 1 >$scope && [ "$(cat $scope)" = 1 ] || exit 9
		user "$1" -test.v -test.timeout=100s -test.run='^(TestProcesses|TestProcessAtomics)$' || exit
		PGAS_TEST_PATHS=soft user "$2" -test.v -test.timeout=100s -test.run='^TestNamedTransport$' || exit
		user "$3" -test.v -test.timeout=100s -test.run='^TestPeeks$' || exit
		echo 2 >$scope
		user "$3" -test.v -test.timeout=100s -test.run='^TestPeeksBesideWindows$' || exit
		if user "$1" -test.v -test.timeout=20s -test.run='^TestProcesses$' >/tmp/refused 2>&1; then
			echo "with ptrace_scope 2 processes copied from each other"
			exit 8
		fi
		grep -m1 ptrace_scope /tmp/refused
	`, "bash", soft, pgas, sync)
	require.Zero(t, r.Code, "%s%s", r.Stdout, r.Stderr)
	for _, name := range []string{"TestProcesses", "TestProcessAtomics", "TestNamedTransport/soft", "TestPeeks", "TestPeeksBesideWindows"} {
		require.Contains(t, r.Stdout, "--- PASS: "+name+" ", "%s did not run", name)
	}
	require.Contains(t, r.Stdout, "ptrace_scope")
}
