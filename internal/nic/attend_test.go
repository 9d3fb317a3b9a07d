package nic

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// wakeful is a NIC that cannot say when there is something to poll.
type wakeful struct{ transport.Domain }

func (wakeful) Wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.New("the channel is broken")
}

// TestAttendsAwake: a rank whose NIC works, and cannot wake it, answers its peers all the same, until it ends.
func TestAttendsAwake(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { return wakeful{d} })
	w.n[0].Start()
	time.Sleep(10 * time.Millisecond) // until it has tried to sleep; any time will do
	sent, err := false, error(nil)
	answered := func() bool {
		w.n[1].Progress()
		if !sent && err == nil {
			sent, err = w.n[1].TryAsk(0, echo, [4]uint64{}, []byte("here"), FirstCookie)
		}
		w.to[1].mu.Lock()
		defer w.to[1].mu.Unlock()
		return w.to[1].answered[FirstCookie] == "here"
	}
	for began := time.Now(); !answered(); {
		require.Less(t, time.Since(began), patient, "nobody attends")
	}
	require.NoError(t, err)
	w.n[0].Quit()
	require.True(t, w.n[0].unattended.Load())
}
