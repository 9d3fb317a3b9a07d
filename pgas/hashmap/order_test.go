package hashmap_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/hashmap"
	"gopgas/pgas/pgastest"
)

// TestMergeOfAnotherMap: what one map's Mine yields, in the order of places, goes into another one that grows as it comes, by a few looks at places for each key.
func TestMergeOfAnotherMap(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		pgastest.RunConfig(t, ranks, pgastest.Config{Stats: true}, func(ctx context.Context, w *pgas.World) error {
			const each, most = 10_000, 20
			a, err := hashmap.New[int64](ctx, w.Team(), each*w.Size())
			if err != nil {
				return err
			}
			keys, vs := make([]uint64, each), make([]int64, each)
			for i := range keys {
				keys[i] = uint64(w.Rank()*each + i)
				vs[i] = int64(3 * keys[i])
			}
			if err := errors.Join(a.AddAll(ctx, keys, vs), a.Fence(ctx)); err != nil {
				return err
			}
			keys, vs = nil, nil
			for k, v := range a.Mine() {
				keys, vs = append(keys, k), append(vs, v)
			}
			b, err := hashmap.New[int64](ctx, w.Team(), 0)
			if err != nil {
				return err
			}
			before := w.Stats()["shm"]["atomic"].Ops
			if err := b.Merge(ctx, keys, vs); err != nil {
				return err
			}
			if looks := w.Stats()["shm"]["atomic"].Ops - before; looks == 0 || looks > uint64(most*len(keys)) {
				return fmt.Errorf("%d keys took %d atomics", len(keys), looks)
			}
			n, err := b.Len(ctx)
			if err != nil || n != each*w.Size() {
				return errors.Join(err, fmt.Errorf("%d keys", n))
			}
			for k, v := range b.Mine() {
				if v != int64(3*k) {
					return fmt.Errorf("key %d has %d", k, v)
				}
			}
			return errors.Join(a.Free(ctx), b.Free(ctx))
		})
	}
}
