//go:build race

package transporttest

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// conflictVariable makes TestConflict run one of the programs below, in a process of its own.
const conflictVariable = "TRANSPORTTEST_CONFLICT"

// conflicts are programs with and without an access that is not ordered.
var conflicts = map[string]struct {
	reported bool
	run      func(t *testing.T, a, b *node)
}{
	"target writes where a put lands": {true, func(t *testing.T, a, b *node) {
		beside := make(chan struct{})
		go func() { b.mem.Data()[100] = 1; close(beside) }()
		a.must(a.op(transport.OpWrite, 1, 0, 64, 512))
		<-beside
	}},
	"target writes the word of an 8-byte put": {true, func(t *testing.T, a, b *node) {
		beside := make(chan struct{})
		go func() { b.mem.Data()[64] = 1; close(beside) }()
		a.must(a.op(transport.OpWrite, 1, 0, 64, 8))
		<-beside
	}},
	"target writes what a get reads": {true, func(t *testing.T, a, b *node) {
		beside := make(chan struct{})
		go func() { b.mem.Data()[100] = 1; close(beside) }()
		a.must(a.op(transport.OpRead, 1, 0, 64, 512))
		<-beside
	}},
	"source reused before its completion": {true, func(t *testing.T, a, b *node) {
		op := a.op(transport.OpWrite, 1, 0, 64, 512)
		a.post(op)
		time.Sleep(20 * time.Millisecond) // the agent has read it by now, but who knows?
		a.mem.Data()[5] = 1
		a.wait(op.Cookie)
	}},
	"result read before its completion": {true, func(t *testing.T, a, b *node) {
		op := a.op(transport.OpRead, 1, 0, 64, 512)
		a.post(op)
		time.Sleep(20 * time.Millisecond)
		require.Zero(t, a.mem.Data()[5])
		a.wait(op.Cookie)
	}},
	"two ranks put to one place": {true, func(t *testing.T, a, b *node) {
		x, y := a.op(transport.OpWrite, 1, 0, 64, 512), b.op(transport.OpWrite, 1, 1024, 64, 512)
		a.post(x)
		time.Sleep(20 * time.Millisecond)
		b.post(y)
		a.wait(x.Cookie)
		b.wait(y.Cookie)
	}},
	"data behind a flag": {false, func(t *testing.T, a, b *node) {
		a.mem.Word64(512).Store(1)
		data, flag := quiet(a.op(transport.OpWrite, 1, 0, 64, 256)), a.op(transport.OpWrite, 1, 512, 1024, 8)
		a.post(data, flag)
		for b.mem.Word64(1024).Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		b.mem.Data()[100] = 1
		a.wait(flag.Cookie)
		a.mem.Data()[5] = 1
	}},
	"data behind a 4-byte flag": {false, func(t *testing.T, a, b *node) {
		a.mem.Word32(512).Store(1)
		a.post(quiet(a.op(transport.OpWrite, 1, 0, 64, 256)), quiet(a.op(transport.OpWrite, 1, 512, 1024, 4)))
		for b.mem.Word32(1024).Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		b.mem.Data()[100] = 1
	}},
	"data behind a message": {false, func(t *testing.T, a, b *node) {
		b.postRecv(1, 1024, 64)
		a.post(quiet(a.op(transport.OpWrite, 1, 0, 64, 256)), quiet(a.op(transport.OpSend, 1, 0, 0, 64)))
		b.recv()
		b.mem.Data()[100]++
		b.mem.Data()[1030]++
	}},
	"source reused after its completion": {false, func(t *testing.T, a, b *node) {
		for range 10 {
			a.mem.Data()[5]++
			a.must(a.op(transport.OpWrite, 1, 0, 64, 512))
		}
	}},
	"inline source reused at once": {false, func(t *testing.T, a, b *node) {
		for range 10 {
			a.mem.Data()[5]++
			op := quiet(a.op(transport.OpWrite, 1, 0, 64, 64))
			op.Flags |= transport.FlagInline
			a.post(op)
		}
	}},
}

// TestConflict only runs in the processes that TestDetectorSeesConflicts starts.
func TestConflict(t *testing.T) {
	c, ok := conflicts[os.Getenv(conflictVariable)]
	if !ok {
		return
	}
	l := newLoopbackUnderTest(FabricConfig{}.withDefaults())
	s := &suite{opt: Options{}.withDefaults(), caps: l.cfg.caps(), open: l.open}
	a, b := s.pair(t, 4096)
	a.ep(1)
	b.ep(1)
	c.run(t, a, b)
}

// TestDetectorSeesConflicts: what is not ordered is reported, and what the contract orders is not.
func TestDetectorSeesConflicts(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for name, c := range conflicts {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(self, "-test.run=^TestConflict$")
			cmd.Env = append(os.Environ(), conflictVariable+"="+name)
			out, err := cmd.CombinedOutput()
			if c.reported {
				require.Contains(t, string(out), "WARNING: DATA RACE", "err %v", err)
			} else {
				require.NoError(t, err, "%s", out)
			}
		})
	}
}
