package mem

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestMake: what is made is zeroed, as long as it is to be, and begins where a word does, and the most where a large page does. The kernel is asked for such pages as
// far as they lie in it.
func TestMake(t *testing.T) {
	m, err := unix.Mmap(-1, 0, makeLarge, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	err = unix.Madvise(m, unix.MADV_HUGEPAGE)
	knows := err == nil && advised(t, Of(m).Addr()) // a kernel may know no large pages, and what emulates one not tell
	require.NoError(t, unix.Munmap(m))
	for _, c := range []struct{ bytes, from int }{
		{},
		{1, 0},
		{13, 8},
		{4096, 4096},
		{makeLarge - 1, 0},
		{makeLarge, 0},
		{makeLarge + 3, 0},
		{makeLarge + 64, 64},
		{makeLarge, 64},
		{makeAligned - 1, 0},
		{makeAligned, 0},
		{makeAligned + 3, 64},
		{makeAligned, makeAligned / 2},
		{makeAligned, makeAligned - 64},
	} {
		r := MakeFrom(c.bytes, c.from)
		require.Equal(t, c.bytes, r.Bytes, "%+v", c)
		require.Zero(t, r.Addr()%8, "%+v", c)
		require.False(t, slices.ContainsFunc(r.Data(), func(b byte) bool { return b != 0 }), "%+v: not zeroed", c)
		far := r.Slice(c.from, c.bytes-c.from)
		if c.bytes >= makeAligned {
			require.Zero(t, far.Addr()%LargePage, "%+v", c)
		}
		if far.Bytes < makeLarge {
			continue
		}
		large := far.large()
		require.Zero(t, large.Addr()%LargePage, "%+v", c)
		require.True(t, far.Contains(large), "%+v", c)
		require.Greater(t, large.Bytes, far.Bytes-2*LargePage, "%+v", c)
		require.Equal(t, knows, advised(t, large.Addr()), "%+v", c)
		require.Equal(t, knows, advised(t, large.Addr()+uint64(large.Bytes)-1), "%+v", c)
	}
}

// advised reports whether the kernel was asked for large pages at an address (proc(5), VmFlags of smaps).
func advised(t *testing.T, addr uint64) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	header := regexp.MustCompile(`(?m)^([0-9a-f]+)-([0-9a-f]+) [r-][w-]`)
	all := header.FindAllSubmatchIndex(maps, -1)
	for i, at := range all {
		var from, to uint64
		_, err := fmt.Sscanf(string(maps[at[2]:at[5]]), "%x-%x", &from, &to)
		require.NoError(t, err)
		if addr < from || addr >= to {
			continue
		}
		end := len(maps)
		if i+1 < len(all) {
			end = all[i+1][0]
		}
		_, flags, _ := strings.Cut(string(maps[at[0]:end]), "VmFlags:")
		return strings.Contains(flags, " hg")
	}
	require.Fail(t, "no mapping has the address")
	return false
}
