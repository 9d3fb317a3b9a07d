package sim

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

func ring(ctx context.Context, w *pgas.World) error {
	a, err := pgas.NewArray[int64](ctx, w.Team(), 4*w.Size(), pgas.Block())
	if err != nil {
		return err
	}
	next := (w.Rank() + 1) % w.Size()
	if err := a.Put(4*next, []int64{int64(w.Rank()), 2, 3, 4}); err != nil {
		return err
	}
	if err := a.Fence(ctx); err != nil {
		return err
	}
	require.Equal(nil2{}, int64((w.Rank()+w.Size()-1)%w.Size()), a.Local()[0])
	return a.Free(ctx)
}

type nil2 struct{}

func (nil2) Errorf(f string, a ...any) { panic(f) }
func (nil2) FailNow()                  {}

func TestSmoke(t *testing.T) {
	for _, n := range []int{1, 2, 7, 64} {
		r := pgastest.RunSim(t, pgastest.SimConfig{Ranks: n, Seed: 1}, ring)
		t.Log(n, r)
		r = pgastest.RunSim(t, pgastest.SimConfig{Ranks: n, Seed: 1, RanksPerNode: 4, Mapped: true}, ring)
		t.Log(n, "mapped", r)
	}
}
