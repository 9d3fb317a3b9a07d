package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestInterrupt: Ctrl-C ends an example in the middle of its work, also where a rank alone has nobody to wait for.
func TestInterrupt(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 seconds")
	}
	if signal.Ignored(os.Interrupt) { // by a shell without job control that runs this in the background: what is started is not to
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	bin := build(t)
	genome := filepath.Join(t.TempDir(), "genome.fa")
	require.NoError(t, os.WriteFile(genome, []byte(">long\n"+strings.Repeat("GATTACACAGGATTTC\n", 1<<21)), 0o600))
	for _, argv := range [][]string{
		{"indexgather", "-reads", "4000000000"},
		{"indexgather", "-reads", "4000000000", "-how", "one"},
		{"histogram", "-values", "4000000000"},
		{"histogram", "-values", "4000000000", "-how", "each"},
		{"gups", "-bits", "26", "-atomic"},
		{"kmer", genome},
		{"words", "-words", "4000000000"},
		{"transpose", "-order", "1000", "-times", "100000"},
		{"matmul", "-n", "4096"},
		{"heat", "-steps", "1000000"},
		{"cg", "-side", "1000"},
		{"p2p", "-rounds", "100000"},
		{"stencil3d", "-steps", "100000"},
		{"ring", "-laps", "1000000000"},
	} {
		t.Run(strings.Join(argv, " "), func(t *testing.T) {
			var out, errs bytes.Buffer
			cmd := exec.Command(filepath.Join(bin, argv[0]), argv[1:]...)
			cmd.Stdout, cmd.Stderr = &out, &errs
			require.NoError(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			time.Sleep(time.Second) // it is at work then
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				require.NoError(t, cmd.Process.Kill())
				<-ended
				t.Fatal("it has gone on for 10 s after Ctrl-C")
			}
			require.Equal(t, 130, cmd.ProcessState.ExitCode(), "%s%s", &out, &errs)
		})
	}
}
