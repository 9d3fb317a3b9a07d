package hashmap

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/transporttest"
)

// TestFreeAgain: a Free whose context ended when one of the map's windows was freed, and not yet the other, is called again as a window's is, and then all is well.
func TestFreeAgain(t *testing.T) {
	short, cancel := context.WithCancel(t.Context())
	left := make(chan struct{})
	pgastest.RunConfig(t, 2, pgastest.Config{}, func(ctx context.Context, w *pgas.World) error {
		m, err := New[int64](ctx, w.Team(), 10)
		if err != nil {
			return err
		}
		for key := range uint64(6) {
			if _, err := m.Add(key, 1); err != nil {
				return err
			}
		}
		if err := m.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 { // this is Free, in which it takes its time in the middle
			require.NoError(t, m.values.Free(ctx))
			for range m.Mine() {
				require.Fail(t, "a key whose value is gone")
			}
			time.Sleep(50 * time.Millisecond)
			cancel()
			<-left
			return m.keys.Free(ctx)
		}
		err = m.Free(short)
		close(left)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, m.Free(ctx))
		require.ErrorIs(t, m.Free(ctx), pgas.ErrClosed)
		return nil
	})
}

// TestFreeAgainBeforeTheOthers: a Free whose context ended before any other member came is called again, and the memory is given back at the same place on all members.
func TestFreeAgainBeforeTheOthers(t *testing.T) {
	for _, c := range []pgastest.Config{{}, {NIC: true}} {
		left := make(chan struct{})
		pgastest.RunConfig(t, 3, c, func(ctx context.Context, w *pgas.World) error {
			_, before := w.HeapUsage()
			m, err := New[int64](ctx, w.Team(), 10)
			if err != nil {
				return err
			}
			if w.Rank() == 1 {
				short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				err := m.Free(short)
				cancel()
				close(left)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			} else {
				<-left
			}
			if err := m.Free(ctx); err != nil {
				return err
			}
			_, after := w.HeapUsage()
			require.Equal(t, before, after)
			require.ErrorIs(t, m.Free(ctx), pgas.ErrClosed)
			if m, err = New[int64](ctx, w.Team(), 10); err != nil {
				return err
			}
			if _, err := m.Add(7, 1); err != nil {
				return err
			}
			n, err := m.Len(ctx)
			require.Equal(t, 1, n)
			if err != nil {
				return err
			}
			return m.Free(ctx)
		})
	}
}

// TestFreeAgainWithSumsUnderWay: a Free whose context has ended while what was added is on its way, over a NIC that is slow, has not freed the second window before the first.
func TestFreeAgainWithSumsUnderWay(t *testing.T) {
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{Seed: 1, Jitter: 50 * time.Microsecond}}
	rounds := 100 // of which some leave the keys behind, if that can be
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		pgastest.RunConfig(t, 3, c, func(ctx context.Context, w *pgas.World) error {
			m, err := New[int64](ctx, w.Team(), 3000)
			if err != nil {
				return err
			}
			if w.Rank() == 1 {
				keys, vs := make([]uint64, 1000), make([]int64, 1000)
				for i := range keys {
					keys[i] = uint64(i)
				}
				ended, end := context.WithCancel(ctx)
				end()
				if err := m.AddAll(ctx, keys, vs); err != nil || m.Free(ended) == nil {
					return err
				}
				time.Sleep(time.Millisecond)
			}
			return m.Free(ctx)
		})
	}
}
