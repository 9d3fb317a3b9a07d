package pgas_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// TestOwnWindowIsRegisteredOnce: what a rank puts out of its own window, and gets into it, where that is registered in buckets, uses the
// buckets that its peer holds, and registers no more.
func TestOwnWindowIsRegisteredOnce(t *testing.T) {
	const size, bucket, part = 8 << 20, 256 << 10, 128 << 10
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{MaxPinned: 4 << 20}, Reg: "ondemand"}
	pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Create(ctx, w.Team(), make([]byte, size))
		if err != nil {
			return err
		}
		if err := w.Team().Engine().FixBuckets(bucket); err != nil {
			return err
		}
		peer, mine := 1-w.Rank(), win.Local()
		for i := range mine[:part] {
			mine[bucket+i] = byte(w.Rank() + i)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		there := make([]byte, part)
		if err := win.Get(peer, bucket, there); err != nil { // from now on this rank holds it
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		before, _ := w.Registered()
		for range 3 {
			if err := win.Put(peer, 4*bucket, mine[bucket:bucket+part]); err != nil {
				return err
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if err := win.Get(peer, bucket, mine[bucket+part:2*bucket]); err != nil {
			return err
		}
		after, _ := w.Registered()
		require.EqualValues(t, 4, after.Joined-before.Joined)
		require.Zero(t, after.Registrations-before.Registrations)
		require.True(t, bytes.Equal(there, mine[4*bucket:4*bucket+part]), "what the peer has put")
		require.True(t, bytes.Equal(there, mine[bucket+part:2*bucket]), "what was got")
		return win.Free(ctx)
	})
}
