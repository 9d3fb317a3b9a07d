package soft_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/transport"
	"gopgas/transport/soft"
	"gopgas/transport/transporttest"
)

// pairedFlag asks for measurements instead of tests.
var pairedFlag = flag.Int("paired", 0, "measure this NIC beside the system call that it stands on, in so many turns")

// TestPaired prints the table that docs/performance.md quotes: go test ./transport/soft -run TestPaired -v -args -paired 21
// Raw is process_vm_writev, or process_vm_readv, of the same memory of the same other process.
func TestPaired(t *testing.T) {
	if *pairedFlag == 0 {
		t.Skip("measures: run with -args -paired 21")
	}
	r, ps := job(t, soft.Config{Spin: time.Millisecond}, 2)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	contest := func(kind transport.Kind, name string, bytes, each int) transporttest.Contest {
		ops := []transport.Op{r.op(kind, 1, 0, 0, bytes)}
		require.NoError(t, r.must(ops[0]))
		if kind == transport.OpWrite && bytes <= r.d.Caps().MaxInline {
			ops[0].Flags |= transport.FlagInline
		}
		call := unix.ProcessVMWritev
		if kind == transport.OpRead {
			call = unix.ProcessVMReadv
		}
		here := []unix.Iovec{{Base: &r.mem.Data()[0], Len: uint64(bytes)}}
		there := []unix.RemoteIovec{{Base: uintptr(r.peers[1].base), Len: bytes}}
		cq := make([]transport.Completion, 1)
		return transporttest.Contest{
			Name: name, Each: each,
			Ours: func(n int) error {
				for range n {
					if k, err := r.d.Post(ops); k != 1 || err != nil {
						return fmt.Errorf("post: %d taken: %w", k, err)
					}
					r.spin(t, cq)
				}
				return nil
			},
			Raw: func(n int) error {
				for range n {
					if k, err := call(ps[1].cmd.Process.Pid, here, there, 0); k != bytes || err != nil {
						return fmt.Errorf("the system has moved %d bytes: %w", k, err)
					}
				}
				return nil
			},
		}
	}
	require.NoError(t, transporttest.Measure(os.Stdout, *pairedFlag, []transporttest.Contest{
		contest(transport.OpWrite, "8 B put", 8, 5000),
		contest(transport.OpRead, "8 B get", 8, 5000),
		contest(transport.OpWrite, "4 KiB put", 4096, 5000),
		contest(transport.OpWrite, "64 KiB put", 64<<10, 1000),
		contest(transport.OpWrite, "1 MiB put", 1<<20, 100),
		contest(transport.OpRead, "1 MiB get", 1<<20, 100),
	}))
}
