package touch

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
)

// watched returns elements of pages of watched memory, and their second mapping.
func watched(t *testing.T, w *Watch, pages int) []int64 {
	t.Helper()
	r, free, err := Alloc(pages * pageBytes)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, free()) })
	second, err := w.Add(r)
	require.NoError(t, err)
	require.NotEqual(t, r.Addr(), second.Addr())
	return mem.Slice[int64](second)
}

func opened(t *testing.T) *Watch {
	t.Helper()
	w, err := Open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Free()) })
	return w
}

// what is a touch as the tests speak of it: the element, how, and the innermost function that is not Go's.
type what struct {
	elem int
	how  string
	in   string
}

func taken(t *testing.T, w *Watch, s []int64) (out []what) {
	t.Helper()
	require.Zero(t, w.Take(func(x Touch) {
		e := what{elem: int(x.Addr-mem.Of(s).Addr()) / 8, how: "load"}
		switch {
		case x.Atomic:
			e.how = "atomic"
		case x.Write:
			e.how = "store"
		}
		for frames, more := runtime.CallersFrames(x.PCs), true; more && e.in == ""; {
			var f runtime.Frame
			f, more = frames.Next()
			if rest, ok := strings.CutPrefix(f.Function, "gopgas/internal/touch."); ok {
				e.in = rest
			}
		}
		out = append(out, e)
	}))
	require.False(t, w.Pending())
	return out
}

// The programs that touch. Each is a function of its own, so that its name is on the stack.

var sum atomic.Int64 // keeps loads

//go:noinline
func loads(s []int64) { sum.Add(s[3]) }

//go:noinline
func stores(s []int64) { s[4] = 1 }

//go:noinline
func adds(s []int64) { atomic.AddInt64(&s[5], 1) }

//go:noinline
func swaps(s []int64) { atomic.SwapInt32((*int32)(mem.Of(s[6:]).Base), 1) }

//go:noinline
func upgrades(s []int64) {
	sum.Add(s[7])
	sum.Add(s[8])
	s[9] = s[7]
	s[10] = 1
}

//go:noinline
func copies(s []int64) {
	var dst [16]int64
	copy(dst[:], s[512:528])
	sum.Add(dst[2])
}

//go:noinline
func clears(s []int64) { clear(s[520:530]) }

//go:noinline
func sorts(s []int64) {
	slices.SortFunc(s[11:17], func(a, b int64) int { return int(b - a) })
}

//go:noinline
func searches(s []int64) {
	sum.Add(int64(bytes.IndexByte(mem.Of(s[30:]).Data()[:5], 1)))
}

//go:noinline
func deep(s []int64, n int) int64 {
	var pad [40]int64
	if n > 0 {
		pad[n%40] = deep(s, n-1)
		return pad[(n+1)%40] + pad[n%40]
	}
	return s[2]
}

// instruction is what is seen of sync/atomic. With the race detector C does it, of whose functions nothing is known.
func instruction(w what) []what {
	if raceEnabled {
		return nil
	}
	return []what{w}
}

func TestTouches(t *testing.T) {
	w := opened(t)
	s := watched(t, w, 2)
	for _, c := range []struct {
		run  func(s []int64)
		want []what
	}{
		{loads, []what{{3, "load", "loads"}}},
		{stores, []what{{4, "store", "stores"}}},
		{adds, instruction(what{5, "atomic", "adds"})},
		{swaps, instruction(what{6, "atomic", "swaps"})},
		{upgrades, []what{{7, "load", "upgrades"}, {9, "store", "upgrades"}}},
		{copies, []what{{512, "load", "copies"}}},
		{clears, []what{{520, "store", "clears"}}},
		{sorts, []what{{12, "load", "sorts"}}},
		{searches, nil},
		{func(s []int64) { sum.Add(deep(s, 3)) }, []what{{2, "load", "deep"}}},
		{func([]int64) {}, nil},
	} {
		require.NoError(t, w.Rearm())
		c.run(s)
		got := taken(t, w, s)
		for i := range got {
			if name := c.want; i < len(name) && (name[i].in == "copies" || name[i].in == "clears") {
				got[i].elem = name[i].elem // a copy begins where it likes
			}
		}
		if len(c.want) == 1 && c.want[0].in == "sorts" && len(got) > 0 {
			require.GreaterOrEqual(t, got[0].elem, 11)
			require.Less(t, got[0].elem, 17)
			got[0].elem = c.want[0].elem
		}
		require.Equal(t, c.want, got)
	}
}

// TestOnceEachPage: what is touched again is not seen until Rearm, on each page for itself; the content stays.
func TestOnceEachPage(t *testing.T) {
	w := opened(t)
	s, other := watched(t, w, 3), watched(t, w, 1)
	for round := range 3 {
		for i := range s {
			sum.Add(s[i])
			s[i] += int64(i)
		}
		other[1] = 1
		got := taken(t, w, s)
		require.Len(t, got, 7)
		for page := range 3 {
			require.Equal(t, what{512 * page, "load", "TestOnceEachPage"}, got[2*page])
			require.Equal(t, what{512 * page, "store", "TestOnceEachPage"}, got[2*page+1])
		}
		require.NoError(t, w.Rearm())
		require.NoError(t, w.Rearm())
		require.Equal(t, int64(1000*(round+1)), s[1000])
		require.Equal(t, []what{{1000, "load", "TestOnceEachPage"}}, taken(t, w, s))
		require.NoError(t, w.Rearm())
	}
}

// TestSystemCalls: memory that a system call reads is seen, where the kernel lets us; else the call fails, but for pages that were
// touched.
func TestSystemCalls(t *testing.T) {
	for name, mode := range map[string]uintptr{"all faults": 0, "the program's own": userModeOnly} {
		t.Run(name, func(t *testing.T) {
			w, err := open(mode)
			if mode == 0 && err != nil && os.Getuid() != 0 {
				t.Skip("needs root, or vm.unprivileged_userfaultfd=1: it serves faults of system calls")
			}
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, w.Free()) })
			require.Equal(t, mode == 0, w.Kernel())
			s := watched(t, w, 1)
			f, err := os.Create(filepath.Join(t.TempDir(), "f"))
			require.NoError(t, err)
			defer f.Close()
			n, err := f.Write(mem.Of(s[20:24]).Data())
			if mode != 0 {
				require.ErrorIs(t, err, unix.EFAULT)
				loads(s)
				n, err = f.Write(mem.Of(s[20:24]).Data())
				require.NoError(t, err)
				require.Equal(t, 32, n)
				require.Equal(t, []what{{3, "load", "loads"}}, taken(t, w, s))
				return
			}
			require.NoError(t, err)
			require.Equal(t, 32, n)
			require.Equal(t, []what{{20, "load", "TestSystemCalls.func1"}}, taken(t, w, s))
		})
	}
}

// TestNothingStopsTheThread: faults end while the world is stopped again and again, and where there is one processor only, which the
// goroutine that faults does not give away: it copies.
func TestNothingStopsTheThread(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w := opened(t)
	s := watched(t, w, 4)
	var end atomic.Bool
	stopped := make(chan int)
	go func() {
		n := 0
		for ; !end.Load(); n++ {
			runtime.GC()
		}
		stopped <- n
	}()
	seen := 0
	for range 300 {
		for page := range 4 {
			copy(s[512*page:], s[512*(3-page)+100:512*(3-page)+200])
		}
		require.Zero(t, w.Take(func(Touch) { seen++ }))
		require.NoError(t, w.Rearm())
		runtime.Gosched()
	}
	end.Store(true)
	require.Positive(t, <-stopped)
	require.GreaterOrEqual(t, seen, 300*6)
}

// TestMoreThanCanBeRemembered: the program goes on, and it is told.
func TestMoreThanCanBeRemembered(t *testing.T) {
	w := opened(t)
	s := watched(t, w, Most+3)
	for i := 0; i < len(s); i += 512 {
		s[i] = 1
	}
	n := 0
	require.Equal(t, 3, w.Take(func(Touch) { n++ }))
	require.Equal(t, Most, n)
	require.NoError(t, w.Rearm())
	s[5] = 1
	require.Equal(t, 3, w.Take(func(Touch) { n++ }))
	require.Equal(t, Most+1, n)
}

// TestClose: the thread ends, the memory stays, and is not watched.
func TestClose(t *testing.T) {
	w := opened(t)
	s := watched(t, w, 2)
	stores(s)
	require.Len(t, taken(t, w, s), 1)
	tid := load(&w.a.tid)
	task := "/proc/self/task/" + strconv.FormatUint(tid, 10)
	require.DirExists(t, task)
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	require.Eventually(t, func() bool { _, err := os.Stat(task); return err != nil }, 10*time.Second, time.Millisecond)
	require.NoError(t, w.Rearm())
	stores(s)
	s[700] = 2
	require.Empty(t, taken(t, w, s))
	_, err := w.Add(mem.Of(s))
	require.ErrorIs(t, err, ErrUnseen)
}

// TestChildren: a process that is started does not inherit what is watched.
func TestChildren(t *testing.T) {
	w := opened(t)
	s := watched(t, w, 1)
	out, err := exec.Command("/bin/echo", "fine").Output()
	require.NoError(t, err)
	require.Equal(t, "fine\n", string(out))
	loads(s)
	require.Len(t, taken(t, w, s), 1)
}

// TestMemoryThatCannotBeWatched: memory of the Go heap cannot be mapped twice.
func TestMemoryThatCannotBeWatched(t *testing.T) {
	w := opened(t)
	_, err := w.Add(mem.Of(make([]int64, 2000)))
	require.ErrorIs(t, err, ErrUnseen)
	require.NoError(t, w.Remove(mem.Of(make([]int64, 1))))
	_, _, err = Alloc(-1)
	require.ErrorIs(t, err, ErrUnseen)
}

// TestRemove: an address that is given back can be watched again.
func TestRemove(t *testing.T) {
	w := opened(t)
	r, free, err := Alloc(3 * pageBytes)
	require.NoError(t, err)
	for range 20 {
		part := r.Slice(5000, 800) // neither its beginning nor its end is a page's
		second, err := w.Add(part)
		require.NoError(t, err)
		require.Equal(t, part.Addr()%pageBytes, second.Addr()%pageBytes)
		s := mem.Slice[int64](second)
		stores(s)
		require.Equal(t, int64(1), mem.Slice[int64](part)[4])
		require.Equal(t, []what{{4, "store", "stores"}}, taken(t, w, s))
		require.NoError(t, w.Remove(second))
	}
	require.NoError(t, free())
}
