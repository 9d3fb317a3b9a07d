package nic

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport/transporttest"
)

// TestReplyWaitsForAWay: a reply whose connection broke gets there also where the asker could not be reached for a while: he lives, and waits for it as long as this rank is
// there.
func TestReplyWaitsForAWay(t *testing.T) {
	w, b := newBrittle(t, 2, transporttest.FabricConfig{})
	require.NoError(t, w.n[0].Connect("connect", 1))
	require.NoError(t, w.n[1].Connect("connect", 0))
	asked := 0
	w.to[0].handled = func() {
		if asked++; asked == 1 {
			b.cut(t, 0, errors.New("no way"))
		}
	}
	sent, err := w.n[1].TryAsk(0, echo, [4]uint64{}, []byte("and the answer"), FirstCookie)
	require.NoError(t, err)
	require.True(t, sent)
	until := func(what string, cond func() bool) {
		t.Helper()
		for began := time.Now(); !cond(); {
			require.Less(t, time.Since(began), patient, what)
			w.n[0].Progress()
			w.n[1].Progress()
		}
	}
	until("there is no way back", w.n[0].ends[1].refused.Load)
	for began := time.Now(); time.Since(began) < 3*wantPause; {
		w.n[0].Progress()
		w.n[1].Progress()
	}
	b.mu.Lock()
	b.dead = nil
	b.mu.Unlock()
	until("the answer", func() bool {
		w.to[1].mu.Lock()
		defer w.to[1].mu.Unlock()
		return w.to[1].answered[FirstCookie] == "and the answer"
	})
	require.Equal(t, 1, asked)
}
