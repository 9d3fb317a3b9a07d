package regmgr

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/soft"
)

// lockedKiB is how much memory the kernel says this process has locked.
func lockedKiB(t *testing.T) (kib int) {
	f, err := os.Open("/proc/self/status")
	require.NoError(t, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmLck:"); ok {
			_, err := fmt.Sscanf(rest, "%d kB", &kib)
			require.NoError(t, err)
			return kib
		}
	}
	require.Fail(t, "no VmLck in /proc/self/status")
	return 0
}

// TestKernelSeesTheAccount: on a NIC that locks pages, what the budget says is what the kernel says, and eviction makes it
// less.
func TestKernelSeesTheAccount(t *testing.T) {
	s := sched.Goroutine(1)
	d, err := soft.New(soft.Config{MaxPinned: 1 << 20}).Open(t.Context(), transport.Config{Size: 1, Job: fmt.Sprintf("regmgr-%d", os.Getpid()), Sched: s})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	m, err := New(Config{Registrar: d, Sched: s, Bytes: 400 << 10, Quiet: true})
	require.NoError(t, err)
	before := lockedKiB(t)
	for range 10 {
		m.Release(acquire(t, m, heap(32), transport.LocalWrite))
		u := m.Budget().Usage()
		require.Equal(t, int(u.Bytes>>10), lockedKiB(t)-before)
		require.LessOrEqual(t, u.Bytes, int64(400<<10))
	}
	require.Equal(t, uint64(7), m.Stats().Evicted)
	m.Trim(1)
	require.Equal(t, 2*128, lockedKiB(t)-before)
	require.NoError(t, m.Close())
	require.Equal(t, before, lockedKiB(t))
}
