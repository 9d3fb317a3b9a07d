package softnic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// mapping returns memory that nobody has touched.
func mapping(t *testing.T, bytes int) mem.Range {
	t.Helper()
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.MunmapPtr(p, uintptr(bytes)) })
	return mem.Range{Base: p, Bytes: bytes}
}

// vmLck is what the kernel says this process has locked.
func vmLck(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "VmLck:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(v), "kB")), 10, 64)
			require.NoError(t, err)
			return n << 10
		}
	}
	require.Fail(t, "no VmLck in /proc/self/status")
	return 0
}

// resident counts the pages of r that are in memory, as the kernel's page map has them.
func resident(t *testing.T, r mem.Range) int {
	t.Helper()
	f, err := os.Open("/proc/self/pagemap")
	require.NoError(t, err)
	defer f.Close()
	page := uint64(os.Getpagesize())
	entries := make([]byte, 8*uint64(r.Bytes)/page)
	_, err = f.ReadAt(entries, int64(r.Addr()/page*8))
	require.True(t, err == nil || errors.Is(err, io.EOF))
	n := 0
	for i := 7; i < len(entries); i += 8 {
		if entries[i]&0x80 != 0 { // bit 63: present
			n++
		}
	}
	return n
}

func newPins(t *testing.T, limit int64) *Pins {
	t.Helper()
	p, err := NewPins(limit)
	require.NoError(t, err)
	return p
}

// TestLockedPages registers overlapping ranges and lets the kernel count.
func TestLockedPages(t *testing.T) {
	page := os.Getpagesize()
	r := mapping(t, 64*page)
	p := newPins(t, 1<<20)
	start := vmLck(t)
	require.Zero(t, resident(t, r))
	locked := func() int { return int(vmLck(t)-start) / page }
	type step struct{ from, bytes, delta, want int }
	for i, s := range []step{
		{0, page, 1, 1},
		{page / 2, 8, 1, 1},            // the same page
		{page - 4, 8, 1, 2},            // across a boundary
		{10 * page, 20 * page, 1, 22},  // apart
		{20 * page, 30 * page, 1, 42},  // overlapping
		{10 * page, 20 * page, -1, 32}, // the overlap stays
		{0, page, -1, 32},              // two others hold that page
		{page - 4, 8, -1, 31},          // the second page goes
		{page / 2, 8, -1, 30},          // now the first too
		{20 * page, 30 * page, -1, 0},  //
		{3, 64*page - 3, 1, 64},        // everything
		{5 * page, 1, 1, 64},           //
		{3, 64*page - 3, -1, 1},        // one page is left in the middle
		{5*page + 0, 1, -1, 0},         //
	} {
		q := r.Slice(s.from, s.bytes)
		if s.delta > 0 {
			require.NoError(t, p.Lock(q))
		} else {
			require.NoError(t, p.Unlock(q))
		}
		require.Equal(t, s.want, locked(), "step %d", i)
		require.EqualValues(t, s.want*page, p.Bytes(), "step %d", i)
	}
	require.Equal(t, 64, resident(t, r), "locking brings every page in")
}

func TestLimitOfBytes(t *testing.T) {
	page := os.Getpagesize()
	r := mapping(t, 20*page)
	p := newPins(t, int64(8*page+100))
	start := vmLck(t)
	require.NoError(t, p.Lock(r.Slice(0, 4*page)))
	err := p.Lock(r.Slice(2*page, 10*page))
	var limit *transport.LimitError
	require.ErrorAs(t, err, &limit)
	require.ErrorIs(t, err, transport.ErrLimit)
	require.Contains(t, limit.What, "40.0 KiB")
	require.Contains(t, limit.Needed, "32.0 KiB")
	require.Contains(t, limit.Found, "16.1 KiB of 32.1 KiB")
	require.NotEmpty(t, limit.Setting)
	require.EqualValues(t, 4*page, p.Bytes())
	require.EqualValues(t, 4*page, vmLck(t)-start, "a refused registration locks nothing")
	require.NoError(t, p.Lock(r.Slice(2*page, 6*page)), "pages that are locked already cost nothing")
	require.NoError(t, p.Unlock(r.Slice(2*page, 6*page)))
	require.NoError(t, p.Unlock(r.Slice(0, 4*page)))
	require.Zero(t, p.Bytes())
}

func TestLockWhatIsNotMapped(t *testing.T) {
	page := os.Getpagesize()
	r := mapping(t, 4*page)
	require.NoError(t, unix.MunmapPtr(r.Slice(2*page, page).Base, uintptr(page)))
	p := newPins(t, 1<<20)
	require.NoError(t, p.Lock(r.Slice(0, page)))
	start := vmLck(t)
	err := p.Lock(r)
	require.ErrorIs(t, err, unix.ENOMEM)
	require.NotErrorIs(t, err, transport.ErrLimit)
	require.Contains(t, err.Error(), "not mapped")
	require.EqualValues(t, page, p.Bytes())
	require.LessOrEqual(t, vmLck(t), start+int64(page), "what the kernel locked before it met the hole may stay locked")
	require.NoError(t, p.Unlock(r.Slice(0, page)))
}

// TestRegisterOften leaves nothing behind.
func TestRegisterOften(t *testing.T) {
	page := os.Getpagesize()
	r := mapping(t, 16*page)
	tab, err := NewTable(newPins(t, 1<<20), 64)
	require.NoError(t, err)
	s := sched.Process(1)
	start := vmLck(t)
	heap := mem.Of(make([]byte, 3*page))
	var regs []transport.Region
	for i := range 10_000 {
		q := r.Slice(i*137%(8*page), 1+i*991%(8*page))
		if i%3 == 0 {
			q = heap.Slice(i%page, 2*page)
		}
		reg, err := tab.Add(q, transport.AllAccess)
		require.NoError(t, err)
		if regs = append(regs, reg); len(regs) == 10 {
			require.NoError(t, tab.Remove(s, regs[3]))
			regs = append(regs[:3], regs[4:]...)
		}
	}
	for _, reg := range regs {
		require.NoError(t, tab.Remove(s, reg))
	}
	require.Zero(t, tab.Live())
	require.Zero(t, tab.pins.Bytes())
	require.Equal(t, start, vmLck(t))
}

const memlockHelper = "SOFTNIC_MEMLOCK_HELPER"

// TestKernelLimit runs this test as a user who may lock 64 KiB.
func TestKernelLimit(t *testing.T) {
	if os.Getenv(memlockHelper) != "" {
		memlockUser()
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	bin := filepath.Join(t.TempDir(), "softnic.test")
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(bin, self, 0o755))
	for dir := filepath.Dir(bin); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	cmd := exec.Command("sh", "-c", `ulimit -l 64 && ulimit -S -l 16 && exec "$0" -test.run '^TestKernelLimit$'`, bin)
	cmd.Dir = filepath.Dir(bin)
	cmd.Env = append(os.Environ(), memlockHelper+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), out.String())
	require.Contains(t, out.String(), "limit of its own: ok")
	require.Contains(t, out.String(), "limit of the kernel: ok")
}

// memlockUser is the other user: the soft limit has been raised to the hard one, and both kinds of limit are
// errors that name it.
func memlockUser() {
	check := func(ok bool, what string, args ...any) {
		if !ok {
			fmt.Printf(what+"\n", args...)
			os.Exit(1)
		}
	}
	p, err := NewPins(0)
	check(err == nil && p.Limit() == 64<<10, "limit %v, %v", p, err)
	r := mem.Of(make([]byte, 1<<20))
	var limit *transport.LimitError
	err = p.Lock(r)
	check(errors.As(err, &limit) && limit.Err == nil && strings.Contains(err.Error(), "64.0 KiB"), "lock 1 MiB: %v", err)
	check(p.Lock(r.Slice(0, 32<<10)) == nil, "lock 32 KiB")
	fmt.Println("limit of its own: ok")
	big, err := NewPins(1 << 30)
	check(err == nil, "%v", err)
	err = big.Lock(r)
	check(errors.As(err, &limit) && limit.Err != nil && strings.Contains(err.Error(), "RLIMIT_MEMLOCK") && big.Bytes() == 0, "lock 1 MiB: %v", err)
	fmt.Println("limit of the kernel: ok")
	os.Exit(0)
}
