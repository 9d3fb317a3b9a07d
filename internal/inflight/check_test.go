//go:build invariants

package inflight

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/bounce"
	"gopgas/internal/mem"
)

// TestBugsPanic: in this build a piece that is freed twice is no silent second owner, and what was given back is spoiled.
func TestBugsPanic(t *testing.T) {
	slots, scratch := make([]byte, 2*64), make([]byte, 2*ScratchBytes)
	var table Table
	table.Init(Config{Pieces: 2, Pool: bounce.New(mem.Of(slots), 64), Scratch: mem.Of(scratch)})

	id, ok := table.TryAcquire(1, true)
	require.True(t, ok)
	b, _ := table.Buffer(id, 64)
	clear(b.Data())
	table.Free(id)
	require.NotContains(t, b.Data(), byte(0), "a slot that was given back keeps nothing")
	require.PanicsWithValue(t, "bug: a piece is freed twice", func() { table.Free(id) })

	tr, _, ok := table.TryBegin("put", 1, false)
	require.True(t, ok)
	table.PartDone(tr, nil)
	require.PanicsWithValue(t, "bug: a transfer has more parts done than it has", func() { table.PartDone(tr, nil) })
}
