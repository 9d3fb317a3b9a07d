package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport"
)

// TestWhoWaitsBehindAnError: where this rank lacks what a connection takes, not only who tries to make one is told, but also those whose messages wait for him; and when there is enough again
// all goes on.
func TestWhoWaitsBehindAnError(t *testing.T) {
	for _, p := range pgastest.ProcPaths() {
		if p.Name != "tcp" {
			continue
		}
		r, out := pgastest.StartProcs(t, 2, p.Procs, 1, func(ctx context.Context, w *pgas.World) error {
			s := New(w.Team())
			add := HandleInTurn(s, "add", func(_ context.Context, _ int, x int) (int, error) { return x + 1, nil })
			if err := s.Start(ctx); err != nil {
				return err
			}
			if w.Rank() == 0 {
				require.NoError(t, lacking(ctx, s, add))
			}
			for m := range w.Size() {
				v, err := add.Call(ctx, m, 1)
				require.NoError(t, err)
				require.Equal(t, 2, v)
			}
			return s.Close(ctx)
		})
		require.Equal(t, 0, r.Code, out)
	}
}

// lacking calls and flushes the own rank, with which there is no connection yet, while it can have no file descriptor and somebody else is at it.
func lacking(ctx context.Context, s *Service, add *Func[int, int]) (err error) {
	var most unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &most); err != nil {
		return err
	}
	none := most
	none.Cur = 3
	l := &s.lanes[0]
	if !l.busy.CompareAndSwap(false, true) {
		return errors.New("the lane is used")
	}
	ended := make(chan error, 2)
	short, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Setrlimit(unix.RLIMIT_NOFILE, &most)) }()
	if err := add.Send(ctx, 0, 1); err != nil {
		return err
	}
	go func() {
		_, err := add.Call(short, 0, 1)
		ended <- err
	}()
	go func() { ended <- s.Flush(short, 0) }()
	for l.waits.Load() != 3 {
		time.Sleep(time.Millisecond)
	}
	l.busy.Store(false) // his own put has failed
	for range 2 {
		if err := <-ended; !errors.Is(err, transport.ErrLimit) {
			return errors.Join(errors.New("another error was told"), err)
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &most); err != nil {
		return err
	}
	if err := s.Flush(ctx, 0); !errors.Is(err, transport.ErrLimit) { // what was sent
		return errors.Join(errors.New("another error was told of what was sent"), err)
	}
	return nil
}
