//go:build unix && amd64

package mem

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestCopyOfMemoryThatIsGone copies from and to a mapping behind whose file's end there is nothing: the fault is the goroutine's panic with
// the address, as one of the builtin is, and the program goes on. Elsewhere Copy is the builtin.
func TestCopyOfMemoryThatIsGone(t *testing.T) {
	const size = 1 << 20
	page := os.Getpagesize()
	f, err := os.Create(filepath.Join(t.TempDir(), "shrinks"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(size))
	m, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(m)) }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for _, n := range []int{100, 5000, 20000, 900000} {
		require.NoError(t, f.Truncate(size))
		mine := noise(n)
		Copy(m[100:], mine)
		there := Of(m).Addr()
		left := n / 2 / page * page // what remains of the file
		require.NoError(t, f.Truncate(int64(left)))
		for name, move := range map[string]func(){"to": func() { Copy(m[100:], mine) }, "from": func() { Copy(mine, m[100:100+n]) }} {
			at, faulted := fault(move)
			require.True(t, faulted, "%s %d bytes", name, n)
			// A processor that moves many bytes at a time may name the first of them, or the one that is not there.
			require.True(t, uint64(at) >= there && uint64(at) < there+uint64(100+n), "%s %d bytes: %#x, mapped at %#x", name, n, at, there)
		}
	}
}

// fault runs f and returns the address of the fault that ended it.
func fault(f func()) (addr uintptr, did bool) {
	defer func() {
		if e, ok := recover().(interface{ Addr() uintptr }); ok {
			addr, did = e.Addr(), true
		}
	}()
	f()
	return 0, false
}
