package pgas

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/control"
	"gopgas/internal/proto"
)

// A rank that talks to more others than a sample has room for tells them all, over several samples, and then only what is new.
func TestFlowsAreToldInTurn(t *testing.T) {
	const ranks = 5 * control.MostFlows / 2
	t.Run("all change", func(t *testing.T) {
		now := make([][2]proto.Count, ranks)
		for r := range now {
			now[r] = [2]proto.Count{{Ops: 1, Bytes: uint64(r)}, {Ops: 2, Bytes: 5}}
		}
		flow := func(rank int) [2]proto.Count { return now[rank] }
		x := teller{told: make([][2]proto.Count, ranks)}
		seen := map[int]uint64{}
		samples := 0
		for ; ; samples++ {
			out := x.changed(flow, [2]string{"shm", "soft"})
			require.LessOrEqual(t, len(out), control.MostFlows)
			if len(out) == 0 {
				break
			}
			for _, f := range out {
				if f.Via == "shm" {
					require.Equal(t, control.Flow{With: f.With, Via: "shm", Ops: 1, Bytes: uint64(f.With)}, f)
				}
				seen[f.With] += f.Ops
			}
		}
		require.Equal(t, 5, samples)
		require.Len(t, seen, ranks)
		for _, ops := range seen {
			require.EqualValues(t, 3, ops, "each once")
		}
		now[7][1] = proto.Count{Ops: 9, Bytes: 90}
		require.Equal(t, []control.Flow{{With: 7, Via: "soft", Ops: 9, Bytes: 90}}, x.changed(flow, [2]string{"shm", "soft"}))
		now[7][1].Bytes = 98 // a sample may come between an operation and its bytes
		require.Equal(t, []control.Flow{{With: 7, Via: "soft", Ops: 9, Bytes: 98}}, x.changed(flow, [2]string{"shm", "soft"}))
		require.Empty(t, x.changed(flow, [2]string{"shm", "soft"}))
	})
	t.Run("the busiest do not keep the others out", func(t *testing.T) {
		ops := uint64(0)
		flow := func(int) [2]proto.Count { return [2]proto.Count{{Ops: ops}} }
		x := teller{told: make([][2]proto.Count, ranks)}
		seen := map[int]bool{}
		for range 6 {
			ops++
			for _, f := range x.changed(flow, [2]string{"shm", ""}) {
				seen[f.With] = true
			}
		}
		require.Len(t, seen, ranks)
	})
}
