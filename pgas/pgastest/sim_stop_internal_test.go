package pgastest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
)

// fatal takes down what a test is failed with.
type fatal struct {
	testing.TB
	text string
}

func (f *fatal) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// TestSimulationThatGoesOnIsStopped: in a world whose ranks look again and again for what does not come something happens for ever. The test fails
// at its limit, and nothing of the world goes on behind it.
func TestSimulationThatGoesOnIsStopped(t *testing.T) {
	f := &fatal{TB: t}
	ended := make(chan struct{})
	at := 0
	go func() {
		defer close(ended)
		SimErrors(f, SimConfig{Ranks: 3, TimeLimit: 300 * time.Millisecond}, func(ctx context.Context, w *pgas.World) error {
			if w.Rank() > 0 {
				return w.Barrier(ctx)
			}
			for {
				if err := w.Team().Engine().Sched.Sleep(ctx, time.Millisecond); err != nil {
					return errors.Join(err, ctx.Err())
				}
			}
		})
	}()
	<-ended
	require.Contains(t, f.text, "has not ended within 300ms of real time")
	stacks := make([]byte, 1<<20)
	for range 100 {
		if at = strings.Index(string(stacks[:runtime.Stack(stacks, true)]), "sched.(*Sim)"); at < 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.Negative(t, at, "its goroutine goes on:\n%s", stacks)
}
