package npmtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}))
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	return b.Bytes()
}

// TestUnpack: only what is asked for is written, nothing outside of the folder, and of another archive nothing at all.
func TestUnpack(t *testing.T) {
	b := archive(t, map[string]string{"package/a/x": "one", "package/a/b/y": "two", "package/z": "three", "package/a/../../evil": "four"})
	sum := sha512.Sum512(b)
	p := Package{Name: "@a/b", Version: "1", Integrity: "sha512-" + base64.StdEncoding.EncodeToString(sum[:]), Folder: "a"}
	top := t.TempDir()
	dir := p.in(top)
	require.Equal(t, filepath.Join(top, "gopgas-npm", "@a+b-1"), dir)
	require.NoError(t, p.unpack(b, dir))
	for name, text := range map[string]string{"x": "one", "b/y": "two"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	entries, err = os.ReadDir(top)
	require.NoError(t, err)
	require.Len(t, entries, 1)

	p.Folder = "none"
	require.ErrorContains(t, p.unpack(b, filepath.Join(top, "none")), "nothing in none")
	p.Integrity = "sha512-"
	require.ErrorContains(t, p.unpack(b, filepath.Join(top, "other")), "another one")
	require.NoDirExists(t, filepath.Join(top, "other"))
}
