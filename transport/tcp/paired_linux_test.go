package tcp_test

import (
	"flag"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// pairedFlag asks for measurements instead of tests.
var (
	pairedFlag = flag.Int("paired", 0, "measure this NIC beside plain connections of package net, in so many turns")
	procsFlag  = flag.Int("paired.procs", 1, "with -paired: how many threads of either process run Go code at a time; a rank of a job has one more than cores")
	rowsFlag   = flag.String("paired.rows", "", "with -paired: only the rows whose names hold this; empty: all")
	coresFlag  = flag.String("paired.cores", "own", "with -paired: own, a core for each of the two processes; one, the same core for both; any, as the system has it")
)

// What a plain connection is for, its first byte, and what a sink has read when it says so.
const (
	plainEcho   = 'e' // the other side sends messages of pingBytes back
	plainSink   = 's' // it reads what comes, and says so with one byte whenever it has read streamBytes
	pingBytes   = 48
	streamBytes = 64 << 20
)

// TestPaired prints the table that docs/performance.md quotes: go test ./transport/tcp -run TestPaired -v -args -paired 21
// The other side of everything is one other process, which sleeps in Go's poller where nothing comes, as does this one unless the row says
// otherwise. What runs where is the same for ours and the plain connections, and does not change: processes that the system moves meet now on one
// core, where no core must be woken, and now on two, which makes a factor of 4.
func TestPaired(t *testing.T) {
	if *pairedFlag == 0 {
		t.Skip("measures: run with -args -paired 21")
	}
	there := settle(t)
	me, _ := jobOf(t, 2, role{Timeout: 5 * time.Second, Plain: true, Core: there})
	echo, sink := dialPlain(t, me.cards[1].Plain, plainEcho), dialPlain(t, me.cards[1].Plain, plainSink)
	require.NoError(t, me.do(transport.OpRead, 1, 0, 0, 8))
	small := make([]byte, pingBytes)
	pingPong := func(n int) error {
		for range n {
			if _, err := echo.Write(small); err != nil {
				return err
			}
			if _, err := io.ReadFull(echo, small); err != nil {
				return err
			}
		}
		return nil
	}
	stream := func(n int) error { // until the other side has read it all
		for range n {
			if _, err := sink.Write(me.m.Data()[areaAt : areaAt+1<<20]); err != nil {
				return err
			}
		}
		_, err := io.ReadFull(sink, small[:1])
		return err
	}
	var cq [8]transport.Completion
	ours := func(kind transport.Kind, bytes, flight int, sleep bool) func(n int) error {
		op, err := me.op(kind, 1, areaAt, areaAt, bytes)
		require.NoError(t, err)
		ops := []transport.Op{op}
		return func(n int) error {
			for i := range n {
				if _, err := me.d.Post(ops); err != nil {
					return err
				}
				if i >= flight-1 {
					finish(t, me.d, cq[:], 1, sleep)
				}
			}
			finish(t, me.d, cq[:], min(n, flight-1), sleep)
			return nil
		}
	}
	word := func(name string, kind transport.Kind, sleep bool) transporttest.Contest { // blocks of 2 to 5 ms
		return transporttest.Contest{Name: name, Each: 200, Blocks: 15, Ours: ours(kind, 8, 1, sleep), Raw: pingPong}
	}
	rows := []transporttest.Contest{
		word("8 B put, sleeping", transport.OpWrite, true),
		word("8 B put, polling", transport.OpWrite, false),
		word("8 B get, sleeping", transport.OpRead, true),
		word("8 B get, polling", transport.OpRead, false),
		word("fetch-add, sleeping", transport.OpFetchAdd, true),
		{Name: "1 MiB puts, 4 in flight", Each: streamBytes >> 20, Ours: ours(transport.OpWrite, 1<<20, 4, true), Raw: stream},
		{Name: "1 MiB gets, 4 in flight", Each: streamBytes >> 20, Ours: ours(transport.OpRead, 1<<20, 4, true), Raw: stream},
	}
	rows = slices.DeleteFunc(rows, func(c transporttest.Contest) bool { return !strings.Contains(c.Name, *rowsFlag) })
	require.NotEmpty(t, rows, "no row's name holds %q", *rowsFlag)
	require.NoError(t, transporttest.Measure(os.Stdout, *pairedFlag, rows))
}

// settle binds this process to the core that -paired.cores gives it, until the test ends, and returns that of the other, plus one.
func settle(t *testing.T) (there int) {
	var may unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &may))
	var cores []int
	for i := range len(may) * strconv.IntSize {
		if may.IsSet(i) {
			cores = append(cores, i)
		}
	}
	here := cores[0]
	switch *coresFlag {
	case "own":
		require.Greater(t, len(cores), 1, "a core for each of two processes: this one may use only %v", cores)
		there = cores[1]
	case "one":
		there = here
	case "any":
	default:
		require.Fail(t, "unknown value of -paired.cores", *coresFlag)
	}
	before := runtime.GOMAXPROCS(*procsFlag)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	t.Setenv("GOMAXPROCS", strconv.Itoa(*procsFlag))
	if *coresFlag == "any" {
		return 0
	}
	var one unix.CPUSet
	one.Set(here)
	bindThreads(t, &one)
	t.Cleanup(func() { bindThreads(t, &may) })
	return there + 1
}

// bindThreads lets all threads of this process run on the cores of set only. New threads are as the one that starts them.
func bindThreads(t *testing.T, set *unix.CPUSet) {
	for range 2 { // those too that have been started meanwhile
		tasks, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			require.NoError(t, err)
			if err := unix.SchedSetaffinity(tid, set); err != unix.ESRCH { // ESRCH: it has ended
				require.NoError(t, err)
			}
		}
	}
}

// bound calls start, which starts a process, on core-1, so that the process is bound to it; 0: as it is.
func bound(core int, start func() error) error {
	if core == 0 {
		return start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	one.Set(core - 1)
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }()
	return start()
}

// servePlain serves plain connections until the process ends, and returns where.
func servePlain() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var what [1]byte
				if _, err := io.ReadFull(c, what[:]); err != nil {
					return
				}
				switch what[0] {
				case plainEcho:
					echo(c, pingBytes)
				case plainSink:
					drink(c)
				}
			}()
		}
	}()
	return l.Addr().String(), nil
}

// dialPlain returns a connection with a child that serves it.
func dialPlain(tb testing.TB, where string, what byte) net.Conn {
	c, err := net.Dial("tcp", where)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	_, err = c.Write([]byte{what})
	require.NoError(tb, err)
	return c
}

// echo sends back messages of n bytes until the other side has closed.
func echo(c net.Conn, n int) {
	buf := make([]byte, n)
	for {
		if _, err := io.ReadFull(c, buf); err != nil {
			return
		}
		if _, err := c.Write(buf); err != nil {
			return
		}
	}
}

// drink reads, and says so with one byte whenever it has read streamBytes, until the other side has closed.
func drink(c net.Conn) {
	buf := make([]byte, 1<<20)
	for left := streamBytes; ; {
		n, err := c.Read(buf[:min(left, len(buf))])
		if err != nil {
			return
		}
		if left -= n; left > 0 {
			continue
		}
		if _, err := c.Write(buf[:1]); err != nil {
			return
		}
		left = streamBytes
	}
}
