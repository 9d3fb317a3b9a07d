package examples_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withoutNotice takes away what the check says first where it is not the machine's to say otherwise: without rights system calls
// do not get at memory whose use is watched, and elsewhere than on Linux on amd64 none is.
func withoutNotice(stderr string) string {
	first, rest, _ := strings.Cut(stderr, "\n")
	switch {
	case os.Getuid() != 0 && strings.HasPrefix(first, "pgas: race check: system calls that are given memory of Local may fail with EFAULT: "),
		runtime.GOOS+runtime.GOARCH != "linuxamd64" && strings.HasPrefix(first, "pgas: race check: uses of Local that are not declared go unseen: "):
		return rest
	}
	return stderr
}

// TestWithoutRaces runs every example with small input under the race check, which must find nothing, and must have
// been able to look at everything.
func TestWithoutRaces(t *testing.T) {
	bin := build(t)
	args := map[string][][]string{
		"hello":       {{}},
		"ring":        {{"-laps", "50"}},
		"heat":        {{"-rows", "40", "-cols", "30", "-steps", "50"}},
		"stencil3d":   {{"-edge", "10", "-steps", "8"}},
		"gups":        {{"-bits", "12"}, {"-bits", "12", "-atomic"}},
		"isx":         {{"-keys", "5000", "-max", "65536"}},
		"kmer":        {{filepath.Join("kmer", "lambda.fa")}},
		"words":       {{"-words", "300"}},
		"transpose":   {{"-order", "64", "-times", "2"}},
		"p2p":         {{"-cols", "40", "-rows", "30", "-rounds", "2"}},
		"matmul":      {{"-n", "40"}},
		"histogram":   {{"-values", "1000"}},
		"cg":          {{"-side", "10"}},
		"indexgather": {{"-table", "1000", "-reads", "2000"}},
	}
	t.Setenv("PGAS_CHECK", "races,fatal")
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		require.Contains(t, args, e.Name(), "an example that is not run under the race check")
		for _, a := range args[e.Name()] {
			argv := append([]string{filepath.Join(bin, e.Name())}, a...)
			for name, launcher := range launchers {
				t.Run(e.Name()+","+name, func(t *testing.T) {
					stdout, stderr, code := start(t, append(launcher(t, 3), argv...)...)
					require.Zero(t, code, "%s%s", stdout, stderr)
					require.Equal(t, "pgas: race check: no races found\n", withoutNotice(stderr))
				})
			}
		}
	}
}
