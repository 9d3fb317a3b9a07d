package pgas

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/bootstrap"
	"gopgas/internal/sched"
	"gopgas/transport/shm"
)

// TestFailOfSeveral: of goroutines that fail at once, as one does and the program's own, which ends because of it, one ends the rank's part of the world; the other
// comes back when that has been done, so that the process does not end before.
func TestFailOfSeveral(t *testing.T) {
	w, err := Assemble(t.Context(), Config{}, Parts{
		Job: bootstrap.InProcess(1)[0], Mapper: shm.NewGroup(1, shm.Config{What: "symmetric heap"})[0],
		Sched: func(here, _ int) *sched.Sched { return sched.Goroutine(here) },
	})
	require.NoError(t, err)
	inside, other := make(chan bool), make(chan bool)
	var ended atomic.Int32
	w.stop = append([]func(){func() {
		if ended.Add(1) > 1 {
			return
		}
		close(inside)
		for range 1000 { // in which the other one comes to it
			runtime.Gosched()
		}
	}}, w.stop...)
	go func() {
		<-inside
		w.Fail(errors.New("the other one"))
		close(other)
	}()
	w.Fail(errors.New("the file is not there"))
	<-other
	require.Equal(t, int32(1), ended.Load(), "what runs beside the program is ended once")
}
