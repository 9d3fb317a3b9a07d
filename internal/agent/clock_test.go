package agent

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/crew"
)

// TestClocks: whatever ways take there and back, a reading is off by no more than it says; and between readings of a clock that runs fast, or slowly, no time is.
func TestClocks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		begin, ahead, drift := rnd.Int64N(1e15), rnd.Int64N(2e15)-1e15, rnd.Float64()*2e-4-1e-4 // of a second
		there := func(here int64) int64 { return here + ahead + int64(drift*float64(here-begin)) }
		var c Clock
		for i := range int64(3) {
			at := begin + i*1e11 // 100 s: 10 ms of drift at most
			asked, answered := at-rnd.Int64N(200_000), at+rnd.Int64N(200_000)
			r := readingOf(asked, there(at), answered)
			require.InDelta(t, there(at)-at, r.Ahead, float64(r.Within)+1)
			require.LessOrEqual(t, r.Within, int64(200_000))
			c.Readings = append(c.Readings, r)
		}
		last := int64(0)
		for here := begin; here <= begin+2e11; here += 1e9 {
			got := c.Here(there(here))
			require.InDelta(t, here, got, float64(c.Within())+50, "drift is no part of it: 50 ns for rounding, and for what drifts within a question")
			require.Greater(t, got, last)
			last = got
		}
		require.InDelta(t, begin-5e8, c.Here(there(begin-5e8)), float64(c.Within())+1e5)
		require.InDelta(t, begin+2e11+5e8, c.Here(there(begin+2e11+5e8)), float64(c.Within())+1e5)
	}
	require.EqualValues(t, 42, Clock{}.Here(42), "of this host")
	require.Zero(t, Clock{}.Within())
}

// TestClockOfAnAgent: on one machine the clocks are one, and a reading contains that.
func TestClockOfAnAgent(t *testing.T) {
	h := dial(t)
	defer h.Close()
	h.ReadClock(t.Context())
	h.ReadClock(t.Context())
	require.Len(t, h.Clock().Readings, 2)
	for _, r := range h.Clock().Readings {
		require.LessOrEqual(t, max(r.Ahead, -r.Ahead), r.Within)
		require.Less(t, time.Duration(r.Within), patience)
	}
	now := crew.Clock()
	require.InDelta(t, now, h.Clock().Here(now), float64(h.Clock().Within()))
}

// TestCollect: what ranks leave comes here, and the folder there goes with the job.
func TestCollect(t *testing.T) {
	h := dial(t)
	p := plan("sh", "-c", `cd $LEFT && yes $PGAS_RANK | head -c 1000000 >of.$PGAS_RANK && mkdir -p sub && ln -sf /etc/passwd link && pwd`)
	p.Folder = "LEFT"
	require.NoError(t, h.Start(t.Context(), p, nil, ""))
	var there string
	for _, r := range h.Processes() {
		stdout, stderr := r.Output()
		out, err := io.ReadAll(stdout)
		require.NoError(t, err)
		errs, err := io.ReadAll(stderr)
		require.NoError(t, err)
		require.Empty(t, string(errs))
		there = strings.TrimSpace(string(out))
		_, err = r.Wait()
		require.NoError(t, err)
	}
	dir := t.TempDir()
	require.NoError(t, h.Collect(t.Context(), dir))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "plain files only")
	for _, rank := range []string{"2", "3"} {
		b, err := os.ReadFile(filepath.Join(dir, "of."+rank))
		require.NoError(t, err)
		require.Equal(t, strings.Repeat(rank+"\n", 500_000), string(b))
	}
	require.DirExists(t, there)
	require.NotNil(t, h.Finish(t.Context()))
	require.NoDirExists(t, there)

	h = dial(t)
	require.NoError(t, h.Start(t.Context(), plan("true"), nil, ""))
	require.NoError(t, h.Collect(t.Context(), t.TempDir()), "nobody was told of a folder: there is nothing")
	require.NotNil(t, h.Finish(t.Context()))

	h = dial(t)
	p.Argv = []string{"sh", "-c", "sleep 1000"}
	require.NoError(t, h.Start(t.Context(), p, nil, ""))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "taken"), nil, 0o600))
	require.ErrorContains(t, h.Collect(t.Context(), filepath.Join(dir, "taken")), "host b: collect what its ranks have written")
	require.NotNil(t, h.Finish(t.Context()), "an agent whose files nobody takes ends all the same")
}

// TestCollectFromASilentAgent: one that is stopped is not waited for without end.
func TestCollectFromASilentAgent(t *testing.T) {
	h := dial(t)
	defer h.Close()
	p := plan("true")
	p.Folder = "LEFT"
	require.NoError(t, h.Start(t.Context(), p, nil, ""))
	for _, r := range h.Processes() {
		_, err := r.Wait()
		require.NoError(t, err)
	}
	require.NoError(t, syscall.Kill(h.Group(), syscall.SIGSTOP))
	told := make(chan error, 1)
	go func() { told <- h.collect(t.Context(), t.TempDir(), time.Millisecond) }()
	select {
	case err := <-told:
		require.EqualError(t, err, "host b: collect what its ranks have written: its agent has sent nothing for 15ms")
	case <-time.After(20 * time.Second):
		t.Error("it is waited for")
	}
	require.NoError(t, syscall.Kill(h.Group(), syscall.SIGKILL))
}

// TestUnpackTakesPlainFilesOnly: an agent cannot write elsewhere, and what is cut short is an error.
func TestUnpackTakesPlainFilesOnly(t *testing.T) {
	pack := func(heads ...tar.Header) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range heads {
			require.NoError(t, w.WriteHeader(&h))
		}
		require.NoError(t, w.Close())
		return b.Bytes()
	}
	for _, bad := range []tar.Header{
		{Name: "../x", Typeflag: tar.TypeReg},
		{Name: "/tmp/x", Typeflag: tar.TypeReg},
		{Name: "a/b", Typeflag: tar.TypeReg},
		{Name: "d", Typeflag: tar.TypeDir},
		{Name: "l", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink},
	} {
		require.ErrorIs(t, unpack(t.TempDir(), bytes.NewReader(pack(bad, tar.Header{Name: lastFile}))), ErrMalformed, "%+v", bad)
	}
	require.Error(t, unpack(t.TempDir(), bytes.NewReader(pack(tar.Header{Name: "..", Typeflag: tar.TypeReg}))))
	require.ErrorIs(t, unpack(t.TempDir(), strings.NewReader("")), io.ErrUnexpectedEOF)
	require.ErrorIs(t, unpack(t.TempDir(), bytes.NewReader(pack(tar.Header{Name: "a", Typeflag: tar.TypeReg}))), io.ErrUnexpectedEOF)
	twice := tar.Header{Name: "a", Typeflag: tar.TypeReg}
	require.ErrorIs(t, unpack(t.TempDir(), bytes.NewReader(pack(twice, twice))), os.ErrExist)
	require.True(t, errors.Is(unpack("/no/folder", nil), os.ErrNotExist))
}
