package nic

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// TestFlushNB: a flush that is begun is over when what was begun before is, whatever has begun since, and is told of what failed.
func TestFlushNB(t *testing.T) {
	w, d := newChoosy(t)
	n := w.n[0]
	require.Equal(t, Handle{}, n.FlushNB(1), "nothing is under way")
	a := w.put(t, 1, 0, 1)
	h := n.FlushNB(1)
	b := w.put(t, 1, 8, 2)
	require.False(t, h.Done())
	require.Equal(t, "transfer, under way", h.String())
	short, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	err := h.Wait(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var of *transport.OpError
	require.ErrorAs(t, err, &of)
	require.Equal(t, 1, of.Rank)
	d.report(a)
	require.NoError(t, h.Wait(t.Context()))
	require.True(t, h.Done())
	require.Equal(t, "transfer, done", h.String())
	require.True(t, n.Pending(1), "the later one is not waited for")
	d.report(b)
	require.NoError(t, n.FlushNB(1).Wait(t.Context()))
	require.True(t, n.Idle())
	require.NoError(t, h.Wait(t.Context()), "a second time")
}

// TestFlushNBAcrossTheHalf: the number up to which a flush goes is not mistaken where its low half begins anew.
func TestFlushNBAcrossTheHalf(t *testing.T) {
	w, d := newChoosy(t)
	n := w.n[0]
	e := n.ends[1]
	const before = 1<<32 - 2
	e.began.Store(before)
	e.ended.Store(before)
	for range 4 {
		a := w.put(t, 1, 0, 1)
		h := n.FlushNB(1)
		b := w.put(t, 1, 8, 2)
		require.False(t, h.Done())
		d.report(a)
		require.NoError(t, h.Wait(t.Context()))
		require.True(t, n.Pending(1))
		d.report(b)
		require.NoError(t, n.Flush(t.Context(), 1))
		require.True(t, h.Done())
	}
}
