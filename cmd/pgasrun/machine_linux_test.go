package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLargePagesRow: what the kernel has been told of large pages is read from its files, and not guessed.
func TestLargePagesRow(t *testing.T) {
	dir := t.TempDir()
	require.Equal(t, "unknown, of shared memory unknown", largePagesRow(dir).value)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "enabled"), []byte("always [madvise] never\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "shmem_enabled"), []byte("always within_size advise [never] deny force\n"), 0o644))
	require.Equal(t, "madvise, of shared memory never", largePagesRow(dir).value)
}
