package pgas_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestBuffersAreLetGo: what the program uses no more is the collector's, though no other transfer comes that would take the places of those it was in.
func TestBuffersAreLetGo(t *testing.T) {
	for _, over := range []string{"", "soft", "tcp"} {
		for _, way := range []pgastest.Config{{}, {Bulk: "superpipe"}, {Bulk: "register"}, {Eager: "bypass"}} {
			for _, bytes := range []int{40_000, 1_500_000} {
				t.Run(fmt.Sprintf("%s/%s%s/%d", over, way.Bulk, way.Eager, bytes), func(t *testing.T) {
					c := way
					c.NIC, c.Over = true, over
					pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error { return letGo(ctx, t, w, bytes) })
				})
			}
		}
	}
}

// letGo has rank 0 move some buffers to and from rank 1, drops them, and waits until they are collected.
func letGo(ctx context.Context, t *testing.T, w *pgas.World, bytes int) error {
	win, err := window.Create(ctx, w.Team(), make([]byte, bytes))
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		var dropped []weak.Pointer[byte]
		var moving sync.WaitGroup
		moving.Go(func() { dropped, err = moveAndDrop(ctx, win, bytes) }) // no frame of this goroutine ever had them
		if moving.Wait(); err != nil {
			return err
		}
		for i, p := range dropped {
			require.Eventually(t, func() bool { runtime.GC(); return p.Value() == nil }, 10*time.Second, time.Millisecond, "buffer %d", i)
		}
	}
	return win.Free(ctx)
}

// moveAndDrop moves some buffers to and from rank 1.
func moveAndDrop(ctx context.Context, win *window.Window[byte], bytes int) (dropped []weak.Pointer[byte], err error) {
	for range 3 {
		src, dst := make([]byte, bytes), make([]byte, bytes)
		for _, move := range []func() (window.Handle, error){
			func() (window.Handle, error) { return win.PutNB(1, 0, src) }, func() (window.Handle, error) { return win.GetNB(1, 0, dst) },
		} {
			h, err := move()
			if err == nil {
				err = h.Wait(ctx)
			}
			if err != nil {
				return nil, err
			}
		}
		dropped = append(dropped, weak.Make(&src[0]), weak.Make(&dst[0]))
	}
	return dropped, win.FlushAll()
}
