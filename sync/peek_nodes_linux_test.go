package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

// TestPeeksInNodes: Go memory is read where it lies in a team of a node of a world of several, also where the first team of its members was freed before it had a long call.
func TestPeeksInNodes(t *testing.T) {
	for _, p := range pgastest.ProcNodes() {
		for _, freed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, freed %v", p.Name, freed), func(t *testing.T) {
				p.Env = append(p.Env, onOneNode.Env...)
				pgastest.RunProcsConfig(t, 5, p.Procs, func(ctx context.Context, w *pgas.World) error { return peeksInNode(ctx, w, freed) })
			})
		}
	}
}

func peeksInNode(ctx context.Context, w *pgas.World, freed bool) error {
	first, err := w.Team().SplitNode(ctx)
	if err != nil {
		return err
	}
	team, err := w.Team().SplitNode(ctx)
	if err != nil {
		return err
	}
	if freed {
		if err := errors.Join(first.Free(ctx), w.Barrier(ctx)); err != nil {
			return err
		}
	}
	if err := newOffered(team).gather(ctx, team, 1); err != nil {
		return err
	}
	if team.Size() > 1 && w.Stats()["shm"]["kernel"].Bytes == 0 {
		return errors.New("the kernel has copied nothing")
	}
	return nil
}
