package proto

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/flight"
	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// sparing is a NIC that registers no workspace for large transfers.
type sparing struct {
	transport.Domain
	closed bool
}

func (d *sparing) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	if r.Bytes == flight.Slots*flight.SlotBytes {
		return transport.Region{}, fmt.Errorf("register %d bytes: found 1000 free, needed %d: %w", r.Bytes, r.Bytes, transport.ErrLimit)
	}
	return d.Domain.Register(r, a)
}

func (d *sparing) Close() error {
	d.closed = true
	return d.Domain.Close()
}

// TestWorkspaceRefused: a NIC on which the workspace cannot be registered is not opened; the error says what was needed, what there
// was, and which setting does without.
func TestWorkspaceRefused(t *testing.T) {
	var nic *sparing
	e := New(Config{
		Size: 1, Sched: sched.Goroutine(1), Peers: peers.New(1), NICName: "loopback", Nodes: []int{0},
		OpenNIC: func(ctx context.Context) (transport.Domain, error) {
			d, err := transporttest.NewFabric(1, transporttest.FabricConfig{}).Provider(0).Open(ctx, transport.Config{
				Size: 1, Job: t.Name(), Secret: []byte(t.Name()), Sched: sched.Goroutine(1),
			})
			nic = &sparing{Domain: d}
			return nic, err
		},
	})
	err := e.openNIC(t.Context())
	require.ErrorIs(t, err, transport.ErrLimit)
	require.ErrorContains(t, err, "found 1000 free")
	require.ErrorContains(t, err, "PGAS_MAX_PINNED")
	require.True(t, nic.closed, "what was opened is given back")
	require.Nil(t, e.nic())
}

// TestContextEndsMidPipe (N1): a wait that is given up ends the wait and nothing else: the memory is the engine's until the
// transfer is over, all of which arrives.
func TestContextEndsMidPipe(t *testing.T) {
	const n = 4 << 20
	c := transporttest.FabricConfig{MaxMessage: 10_000, Jitter: time.Millisecond}
	tm := newTeamWith(t, 2, n, c, nil, forcedBulk(t, "superpipe", 1000))
	e, to := tm.e[0], &tm.of[0][1]
	given, cancel := context.WithCancelCause(t.Context())
	cancel(errMidPipe)
	src, back := filled(n), memoryOf(n, 0)
	put, err := e.PutNB(to, 0, src)
	require.NoError(t, err)
	if err := put.Wait(given); err != nil { // else the slots took all of it at once
		require.ErrorIs(t, err, errMidPipe)
	}
	require.NoError(t, put.Wait(t.Context()))
	require.NoError(t, e.Flush(to))
	require.Equal(t, src.Data(), tm.mem[1].Data())
	get, err := e.GetNB(to, 0, back)
	require.NoError(t, err)
	require.ErrorIs(t, get.Wait(given), errMidPipe, "4 MiB take longer than a look at the context")
	require.NoError(t, get.Wait(t.Context()), "it has gone on")
	require.Equal(t, src.Data(), back.Data())
	require.Eventually(t, func() bool { return e.nic().flights.Levels().Flights == 0 }, time.Minute, time.Millisecond)
	slotsBack(t, e)
}

var errMidPipe = fmt.Errorf("nobody wants to wait any more")

// TestCloseMidPipe: puts and gets in pipes when their own NIC closes end in an error, all of them, and so does what comes after.
func TestCloseMidPipe(t *testing.T) {
	const n = 4 << 20
	c := transporttest.FabricConfig{MaxMessage: 10_000, Jitter: 20 * time.Millisecond}
	tm := newTeamWith(t, 2, n, c, nil, forcedBulk(t, "superpipe", 1000))
	// 400 chunks, three at a time: what is begun here lasts for seconds.
	e, to := tm.e[0], &tm.of[0][1]
	put, err := e.PutNB(to, 0, filled(n))
	require.NoError(t, err)
	get, err := e.GetNB(to, 0, memoryOf(n, 0))
	require.NoError(t, err)
	_, err = e.GetNB(to, 0, memoryOf(n, 0)) // whose handle nobody keeps
	require.NoError(t, err)
	e.Abandon()
	require.ErrorIs(t, get.Wait(t.Context()), transport.ErrClosed)
	if err := put.Wait(t.Context()); err != nil { // the source may have been copied by then
		require.ErrorIs(t, err, transport.ErrClosed)
	}
	require.ErrorIs(t, e.Flush(to), transport.ErrClosed)
	require.ErrorIs(t, e.Put(to, 0, filled(n)), transport.ErrClosed)
	require.Zero(t, e.nic().flights.Levels().Pipes)
}
