package pgas_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
)

// interrupted tells a process that it is a program of Main, which ends with its input or its context.
const interrupted = "PGAS_TEST_INTERRUPTED"

// TestInterruptedInTheBackground: a Ctrl-C ends a program of Main, but not one that was told to ignore it when it was started.
func TestInterruptedInTheBackground(t *testing.T) {
	if os.Getenv(interrupted) != "" {
		pgas.Main(func(ctx context.Context, _ *pgas.World) error {
			over := make(chan struct{})
			go func() {
				_, _ = io.Copy(io.Discard, os.Stdin)
				close(over)
			}()
			fmt.Println("ready")
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-over:
				return nil
			}
		})
	}
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for prologue, want := range map[string]int{"": 130, `trap "" INT; `: 0} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", prologue+`exec "$0" -test.run=^TestInterruptedInTheBackground$`, self)
		cmd.Env = append(os.Environ(), interrupted+"=1")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		if want == 0 {
			require.NoError(t, in.Close())
		}
		_ = cmd.Wait()
		require.Equal(t, want, cmd.ProcessState.ExitCode(), "%q", prologue)
	}
}
