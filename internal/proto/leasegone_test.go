package proto

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/am"
	"gopgas/internal/flight"
	"gopgas/internal/peers"
	"gopgas/internal/superpipe"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// stalling is a NIC whose rank can be kept from learning what it has done.
type stalling struct {
	transport.Domain
	stalled atomic.Bool
}

func (d *stalling) Poll(cq []transport.Completion) (int, error) {
	if d.stalled.Load() {
		return 0, nil
	}
	return d.Domain.Poll(cq)
}

// stall has the NIC of rank 1 be one that can be kept still.
func stall(d *stalling) func(*Config) {
	return func(c *Config) {
		if open := c.OpenNIC; c.Rank == 1 {
			c.OpenNIC = func(ctx context.Context) (dom transport.Domain, err error) {
				d.Domain, err = open(ctx)
				return d, err
			}
		}
	}
}

// sending counts the messages that a NIC was given.
type sending struct {
	*cutting
	sends atomic.Int64
}

func (d *sending) Post(ops []transport.Op) (int, error) {
	k, err := d.cutting.Post(ops)
	for i := range ops[:k] {
		if ops[i].Kind == transport.OpSend {
			d.sends.Add(1)
		}
	}
	return k, err
}

// TestGetEndsWithItsOwnerOutOfReach: a get whose request is on its way to an owner that lives and cannot be reached any more ends in an error, and does not wait for him
// to stop. What he leaves is settled when he can be reached.
func TestGetEndsWithItsOwnerOutOfReach(t *testing.T) {
	const n = 100_000
	for _, name := range []string{"immediates", "order"} {
		t.Run(name, func(t *testing.T) {
			owner, getter := &stalling{}, &sending{}
			tm := newTeamWith(t, 2, n, leased[name], func(d transport.Domain) transport.Domain { getter.cutting = newCutting(d); return getter }, func(c *Config) {
				forcedBulk(t, "lease", 1000)(c)
				stall(owner)(c)
			})
			e, to := tm.e[0], &tm.of[0][1]
			src, back := filled(n), memoryOf(n, 0)
			require.NoError(t, errors.Join(e.Put(to, 0, src), e.Flush(to)))
			tm.settled(t)
			owner.stalled.Store(true)
			before, got := getter.sends.Load(), make(chan error, 1)
			go func() { got <- e.Get(to, 0, back) }()
			require.Eventually(t, func() bool { return getter.sends.Load() > before }, time.Minute, time.Millisecond)
			getter.mu.Lock()
			getter.dead = errors.New("no way")
			getter.mu.Unlock()
			require.NoError(t, getter.cut(1))
			_, err := e.Load64(to, 0) // who uses the connection notices
			require.Error(t, err)
			require.Error(t, <-got)
			clear(back.Data()) // it is the caller's again
			getter.mu.Lock()
			getter.dead = nil
			getter.mu.Unlock()
			owner.stalled.Store(false)
			require.NoError(t, tm.e[1].Put(&tm.of[1][0], 0, src), "so that they are connected")
			tm.settled(t)
			require.Equal(t, make([]byte, n), back.Data())
			require.NoError(t, e.Get(to, 0, back))
			require.Equal(t, src.Data(), back.Data())
		})
	}
}

// TestLeasesEndWithWhoIsGone: transfers through leases with a rank that is known to be gone end, though the NIC has not said so.
func TestLeasesEndWithWhoIsGone(t *testing.T) {
	const n = 8 << 20
	for _, get := range []bool{false, true} {
		other := &stalling{}
		tm := newTeamWith(t, 2, n, transporttest.FabricConfig{Jitter: time.Millisecond}, nil, func(c *Config) {
			forcedBulk(t, "lease", 1000)(c)
			stall(other)(c)
		})
		e, to := tm.e[0], &tm.of[0][1]
		begin := e.PutNB
		if get {
			begin = e.GetNB
		}
		h, err := begin(to, 0, filled(n)) // 64 chunks, each of which waits for the one before the last
		require.NoError(t, err)
		other.stalled.Store(true)
		require.True(t, e.Peers.MarkGone(1, peers.Silent))
		require.ErrorIs(t, h.Wait(context.Background()), transport.ErrPeerGone)
		require.Eventually(t, func() bool { return e.nic().flights.Levels().Flights == 0 }, time.Minute, time.Millisecond)
		other.stalled.Store(false)
	}
}

// TestFreeEndsWithLeases: Free ends with its context while another rank has a lease for a transfer into the memory, or is to get some of it, and says who that is; the memory
// stays. It is freed when that has ended.
func TestFreeEndsWithLeases(t *testing.T) {
	for name, get := range map[string]bool{"put": false, "get": true} {
		t.Run(name, func(t *testing.T) {
			tm := newTeamWith(t, 2, 1<<20, leased["immediates"], nil, forcedBulk(t, "lease", 1000))
			e, to := tm.e[0], &tm.of[0][1]
			require.NoError(t, errors.Join(e.Put(to, 0, filled(100_000)), e.Flush(to)))
			tm.settled(t)
			owner, other := tm.e[1].nic().flights, tm.e[0].nic().flights
			part := tm.mem[1].Slice(0, 100_000)
			var out, grant [flight.ReplyBytes]byte
			offer := superpipe.Offer{Bytes: 100_000, Tag: 1000}
			kind, payload := flight.ToPut, offer.Append(nil)
			if get { // of which nobody takes in what arrives: the lease is not this get's
				require.True(t, other.Ready())
				_, ok := other.Serve(flight.ToPut, am.Request{From: 1, Payload: offer.Append(nil)}, tm.mem[0].Slice(0, 100_000), grant[:])
				require.True(t, ok)
				require.NotZero(t, grant[0])
				kind, payload = flight.ToGet, grant[1:1+grant[0]]
			}
			_, ok := owner.Serve(kind, am.Request{From: 0, Payload: payload}, part, out[:])
			require.True(t, ok)
			require.NotZero(t, out[0])
			patience := errors.New("patience is at its end")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, patience)
			defer cancel()
			freed := make(chan error, 1)
			go func() { freed <- tm.xp[1].FreeWithin(ctx) }()
			select {
			case err := <-freed:
				require.ErrorIs(t, err, patience)
				require.ErrorContains(t, err, "ranks [0]")
			case <-time.After(time.Minute):
				require.Fail(t, "it goes on waiting")
			}
			require.True(t, tm.xp[1].hasKey, "it stays registered")
			require.True(t, e.Peers.MarkGone(1, peers.Silent) && tm.e[1].Peers.MarkGone(0, peers.Silent))
			owner.GaveUp(0, nil, transport.ErrPeerGone)
			require.NoError(t, tm.xp[1].FreeWithin(t.Context()))
			require.False(t, tm.xp[1].hasKey)
		})
	}
}
