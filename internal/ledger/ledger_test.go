package ledger

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// now is when all is measured here.
var now = time.Date(2026, 11, 27, 9, 30, 0, 5, time.UTC)

func open(t *testing.T, dir string) Ledger {
	t.Helper()
	l, err := Open(dir)
	require.NoError(t, err)
	require.True(t, l.Keeps())
	return l
}

// TestPages: each kind has what was written of it last, with the time, whoever looks.
func TestPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "costs")
	l := open(t, dir)
	what, measured, err := l.Read("soft", "a")
	require.NoError(t, err)
	require.Nil(t, what)
	require.Zero(t, measured)
	for _, text := range []string{`{"x":1}`, `{"x":2}`} {
		require.NoError(t, l.Write("soft", "a", []byte(text), now))
		require.NoError(t, l.Write("soft", "b", []byte(`[]`), now))
		what, measured, err = open(t, dir).Read("soft", "a")
		require.NoError(t, err)
		require.JSONEq(t, text, string(what))
		require.Equal(t, now.Truncate(time.Second), measured)
	}
	what, _, err = l.Read("tcp", "a")
	require.NoError(t, err)
	require.Nil(t, what)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, f := range files {
		require.True(t, strings.HasPrefix(f.Name(), "soft-") && strings.HasSuffix(f.Name(), ".json"), f.Name())
		info, err := f.Info()
		require.NoError(t, err)
		require.EqualValues(t, 0o644, info.Mode().Perm(), "others who share the directory read it")
	}
}

// TestNoPages: what is there and no page of that kind is an error that names the file, and a page takes its place.
func TestNoPages(t *testing.T) {
	l := open(t, t.TempDir())
	path := l.path("soft", "a")
	as := func(p page) string {
		text, err := json.Marshal(p)
		require.NoError(t, err)
		return string(text)
	}
	good := page{Version: version, Kind: "a", What: []byte(`1`)}
	other, old := good, good
	other.Kind, old.Version = "b", version+1
	for text, want := range map[string]string{
		"":                                    "unexpected end",
		"nonsense":                            "invalid character",
		as(good)[:20]:                         "unexpected end",
		as(other):                             "it is of b, want a",
		as(old):                               "version 2, want 1",
		strings.Repeat(" ", mostBytes) + "{}": "want at most",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		what, _, err := l.Read("soft", "a")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, path)
		require.Nil(t, what)
	}
	require.NoError(t, l.Write("soft", "a", good.What, now))
	what, _, err := l.Read("soft", "a")
	require.NoError(t, err)
	require.Equal(t, "1", string(what))
	require.Error(t, l.Write("soft", "a", []byte("nonsense"), now), "it is no JSON")
}

// TestNoFiles: what is no file, or has no end, is told like what is no page, and a page takes its place: nobody waits for it.
func TestNoFiles(t *testing.T) {
	l := open(t, t.TempDir())
	for what, put := range map[string]func(path string) error{
		"found p":  func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"found D":  func(path string) error { return os.Symlink("/dev/zero", path) },
		"too many": func(path string) error { return os.Symlink(path, path) },
	} {
		require.NoError(t, put(l.path("soft", "a")))
		read := make(chan error, 1)
		go func() {
			_, _, err := l.Read("soft", "a")
			read <- err
		}()
		select {
		case err := <-read:
			require.ErrorContains(t, err, what)
			require.ErrorContains(t, err, l.path("soft", "a"))
		case <-time.After(10 * time.Second):
			t.Fatal("it waits for a writer")
		}
		require.NoError(t, l.Write("soft", "a", []byte("1"), now))
		text, _, err := l.Read("soft", "a")
		require.NoError(t, err)
		require.Equal(t, "1", string(text))
		require.NoError(t, os.Remove(l.path("soft", "a")))
	}
}

// TestElsewhere: what is read in one directory is not written into another where the process has gone.
func TestElsewhere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	l := open(t, "costs")
	t.Chdir(t.TempDir())
	require.NoError(t, l.Write("soft", "a", []byte("1"), now))
	what, _, err := open(t, filepath.Join(dir, "costs")).Read("soft", "a")
	require.NoError(t, err)
	require.Equal(t, "1", string(what))
}

// TestOpen: what can be no ledger is said before anything is measured, and who has no room, or no right, is told when he writes; nothing is left then.
func TestOpen(t *testing.T) {
	none, err := Open("")
	require.NoError(t, err)
	require.False(t, none.Keeps())
	require.NoError(t, none.Write("soft", "a", nil, now))
	what, _, err := none.Read("soft", "a")
	require.NoError(t, err)
	require.Nil(t, what)

	dir := t.TempDir()
	_, err = Open(filepath.Join(dir, "not", "there"))
	require.ErrorContains(t, err, "make it: no such file")
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Open(file)
	require.ErrorContains(t, err, "want a directory")

	l := open(t, filepath.Join(dir, "gone"))
	require.NoError(t, os.WriteFile(l.dir, nil, 0o600)) // meanwhile
	require.Error(t, l.Write("soft", "a", []byte("1"), now))
	require.NoError(t, os.Remove(l.dir))
	require.NoError(t, os.MkdirAll(l.path("soft", "a"), 0o755)) // nothing can be renamed to that
	require.Error(t, l.Write("soft", "a", []byte("1"), now))
	files, err := os.ReadDir(l.dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	_, _, err = l.Read("soft", "a")
	require.Error(t, err)
}

// TestWriters: who reads while many write finds what one of them has written, whole.
func TestWriters(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "costs"))
	long := func(of int) []byte { return []byte(`"` + strings.Repeat(fmt.Sprint(of), 20000) + `"`) }
	var writers sync.WaitGroup
	for of := range 4 {
		writers.Go(func() {
			for range 20 {
				if err := l.Write("soft", "a", long(of), now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 40 {
		what, _, err := l.Read("soft", "a")
		require.NoError(t, err)
		if what != nil {
			require.Equal(t, string(long(int(what[1]-'0'))), string(what))
		}
	}
	writers.Wait()
}

// TestMachine: a machine is told by what makes others' costs differ.
func TestMachine(t *testing.T) {
	require.NotEmpty(t, Processor())
	require.Contains(t, Machine(), Processor())
	require.Contains(t, Machine(), " cores, ")
	require.Equal(t, Machine(), Machine())
}
