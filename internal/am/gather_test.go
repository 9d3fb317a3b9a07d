package am

import (
	"encoding/binary"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// fake is a NIC that does with what it is given what a test says.
type fake struct {
	transport.Domain
	post func(ops []transport.Op) (int, error)
}

func (f *fake) Post(ops []transport.Op) (int, error) {
	if f.post != nil {
		return f.post(ops)
	}
	return len(ops), nil
}

// alone makes the messages of rank 0 of two over a fake NIC.
func alone(t *testing.T) (*AM, *fake) {
	d, err := transporttest.NewFabric(2, transporttest.FabricConfig{}).Provider(0).Open(t.Context(), transport.Config{Size: 2, Sched: sched.Goroutine(2)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	f := &fake{Domain: d}
	a, err := New(f, 0, 2, 0, base, func(Request, []byte) (int, uint8) { return 0, 0 })
	require.NoError(t, err)
	return a, f
}

// reported is the completion of the newest request's sending, and answer its reply, in receive buffer 0.
func (a *AM) reported(s transport.Status) (c transport.Completion) {
	return transport.Completion{Kind: transport.OpSend, Status: s, Cookie: base + uint64(a.nRecv+ownRequests-1-len(a.free))}
}

func (a *AM) answer(status uint8) transport.Completion {
	i := ownRequests - 1 - len(a.free)
	header{kind: kindReply, handler: status, slot: uint16(i), seq: a.slots[i].seq}.encode(a.buffer(0).Data())
	return transport.Completion{Kind: transport.OpRecv, Cookie: base, Bytes: headerBytes}
}

// flushed makes a request to rank 1 that the NIC gives back unsent: it is to be sent again.
func (a *AM) flushed(t *testing.T) {
	t.Helper()
	taken, err := a.Gather(transport.EP{Index: 1, Incarnation: 1}, 1, 3, [4]uint64{}, transport.SGE{Mem: mem.Of(make([]byte, 8))}, 42)
	require.NoError(t, err)
	require.True(t, taken)
	c := a.reported(transport.StatusFlushed)
	_, told, err := a.Arrived(&c)
	require.NoError(t, err)
	require.False(t, told)
}

// TestLentUntilSent (A5): whose memory is lent learns of his request's end when the NIC has it no more, whatever comes first.
func TestLentUntilSent(t *testing.T) {
	const ok, flushed, gone = transport.StatusOK, transport.StatusFlushed, transport.StatusPeerGone
	const answer = 99 // in the place of a status: the reply arrives; lost, again: these are called
	const lost, again = 98, 97
	for _, c := range []struct {
		name   string
		events []transport.Status
		end    error // with the last event; nil: the reply
		byLost bool  // Lost tells, as the last event
	}{
		{"sent, answered", []transport.Status{ok, answer}, nil, false},
		{"answered, sent", []transport.Status{answer, ok}, nil, false},
		{"answered, its acknowledgement lost", []transport.Status{answer, flushed}, nil, false},
		{"answered, lost, sent", []transport.Status{answer, lost, ok}, nil, false},
		{"sent again, answered", []transport.Status{flushed, again, ok, answer}, nil, false},
		{"sent again, answered before", []transport.Status{flushed, again, answer, ok}, nil, false},
		{"held, answered", []transport.Status{flushed, answer}, nil, false},
		{"lost before it was sent", []transport.Status{lost, ok}, ErrLost, false},
		{"lost, flushed", []transport.Status{lost, flushed}, ErrLost, false},
		{"lost, gone", []transport.Status{lost, gone}, transport.ErrPeerGone, false},
		{"gone", []transport.Status{gone}, transport.ErrPeerGone, false},
		{"sent, lost", []transport.Status{ok, lost}, nil, true},
		{"held, lost", []transport.Status{flushed, lost}, nil, true},
		{"flushed too often", []transport.Status{flushed, again, flushed, again, flushed, again, flushed}, ErrLost, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, f := alone(t)
			payload := transport.SGE{Mem: mem.Of(make([]byte, 100)), LKey: 5}
			posts := 0
			f.post = func(ops []transport.Op) (int, error) {
				posts++
				require.EqualValues(t, 2, ops[0].NSGE)
				require.Equal(t, payload, ops[0].SGE[1])
				require.Equal(t, headerBytes, ops[0].SGE[0].Mem.Bytes)
				h, err := decode(append(append([]byte(nil), ops[0].SGE[0].Mem.Data()...), payload.Mem.Data()...))
				require.NoError(t, err)
				require.Equal(t, header{kind: kindRequest, handler: 3, slot: h.slot, seq: 1, n: 100, args: [4]uint64{1, 2, 3, 4}}, h)
				return 1, nil
			}
			taken, err := a.Gather(transport.EP{Index: 1, Incarnation: 1}, 1, 3, [4]uint64{1, 2, 3, 4}, payload, 42)
			require.NoError(t, err)
			require.True(t, taken)
			credits := a.credits[1]
			for k, e := range c.events {
				last := k == len(c.events)-1
				if e == lost {
					cookies := a.Lost(1)
					require.Equal(t, last, len(cookies) == 1)
					continue
				}
				if e == again {
					require.Empty(t, a.Again(func(int, bool) (transport.EP, Route) { return transport.EP{Index: 1, Incarnation: 2}, Open }))
					continue
				}
				done := a.reported(e)
				if e == answer {
					done = a.answer(7)
				}
				r, told, err := a.Arrived(&done)
				require.Equal(t, last, told, "event %d", k)
				if !told {
					require.NoError(t, err)
					continue
				}
				require.EqualValues(t, 42, r.Cookie)
				if c.end == nil {
					require.NoError(t, err)
					require.EqualValues(t, 7, r.Status)
				}
				require.ErrorIs(t, err, c.end)
				require.NoError(t, a.Release(r))
			}
			require.Empty(t, a.Lost(1), "it is told once")
			a.Again(func(int, bool) (transport.EP, Route) { return transport.EP{}, Gone })
			require.Len(t, a.free, ownRequests)
			require.Equal(t, credits+1, a.credits[1])
			require.False(t, a.Holds())
		})
	}
}

// TestLostWhileItIsSentAgain (A5): a rank may be given up while the poller sends a request again that the NIC then has no room for.
func TestLostWhileItIsSentAgain(t *testing.T) {
	a, f := alone(t)
	a.flushed(t)
	f.post = func([]transport.Op) (int, error) {
		require.Empty(t, a.Lost(1), "the NIC may be taking it")
		return 0, nil
	}
	up := func(int, bool) (transport.EP, Route) { return transport.EP{Index: 1, Incarnation: 2}, Open }
	require.Equal(t, []Unsent{{1, 42}}, a.Again(up))
	require.Empty(t, a.Again(up))
	require.Len(t, a.free, ownRequests)
	require.False(t, a.Holds())
}

// TestNoneOvertakes (A6): a request over a new connection waits for those that went over the one before, until they have been sent again, and those keep their order.
func TestNoneOvertakes(t *testing.T) {
	a, f := alone(t)
	older, newer := transport.EP{Index: 1, Incarnation: 1}, transport.EP{Index: 1, Incarnation: 2}
	ask := func(ep transport.EP, cookie uint64) bool {
		taken, err := a.Request(ep, 1, 3, [4]uint64{cookie}, nil, cookie)
		require.NoError(t, err)
		return taken
	}
	flush := func(slot int) {
		_, _, err := a.Arrived(&transport.Completion{Kind: transport.OpSend, Status: transport.StatusFlushed, EP: older, Cookie: base + uint64(a.nRecv+slot)})
		require.NoError(t, err)
	}
	require.True(t, ask(older, 1))
	require.True(t, ask(older, 2))
	require.False(t, ask(newer, 3), "those before may be found not to have gone")
	flush(0)
	flush(1)
	require.False(t, ask(newer, 3), "they wait for the connection")

	var sent []uint64
	room := 0
	f.post = func(ops []transport.Op) (int, error) {
		if room--; room < 0 {
			return 0, nil
		}
		h, err := decode(ops[0].SGE[0].Mem.Data())
		require.NoError(t, err)
		sent = append(sent, h.args[0])
		require.Equal(t, newer, ops[0].EP)
		return 1, nil
	}
	again := func() { require.Empty(t, a.Again(func(int, bool) (transport.EP, Route) { return newer, Open })) }
	again()
	require.Empty(t, sent, "the NIC has no room")
	room = 1
	again()
	require.False(t, ask(newer, 3), "one waits still")
	calls := 0
	require.Empty(t, a.Again(func(int, bool) (transport.EP, Route) { calls++; return newer, Waiting }))
	require.Equal(t, 1, calls)
	room = 2
	again()
	require.True(t, ask(newer, 3))
	require.Equal(t, []uint64{1, 2, 3}, sent)
	require.Len(t, a.Lost(1), 3)
}

// TestComesUpBetweenTwo: a connection that comes up while Again goes through what waits is for all of it the next time.
func TestComesUpBetweenTwo(t *testing.T) {
	a, f := alone(t)
	a.flushed(t)
	a.flushed(t)
	var sent []uint16
	f.post = func(ops []transport.Op) (int, error) {
		h, err := decode(append(append([]byte(nil), ops[0].SGE[0].Mem.Data()...), ops[0].SGE[1].Mem.Data()...))
		require.NoError(t, err)
		sent = append(sent, h.slot)
		return 1, nil
	}
	up := false
	comes := func(int, bool) (transport.EP, Route) {
		r := Waiting
		if up {
			r = Open
		}
		up = true
		return transport.EP{Index: 1, Incarnation: 2}, r
	}
	require.Empty(t, a.Again(comes))
	require.Empty(t, sent)
	require.Empty(t, a.Again(comes))
	require.Equal(t, []uint16{0, 1}, sent)
}

// TestGatherNobodyTakes: what the NIC does not take leaves nothing behind.
func TestGatherNobodyTakes(t *testing.T) {
	a, f := alone(t)
	f.post = func([]transport.Op) (int, error) { a.Lost(1); return 0, nil }
	taken, err := a.Gather(transport.EP{Index: 1, Incarnation: 1}, 1, 3, [4]uint64{}, transport.SGE{Mem: mem.Of(make([]byte, 8))}, 42)
	require.NoError(t, err)
	require.False(t, taken)
	require.Len(t, a.free, ownRequests)
	require.Empty(t, a.Lost(1))
}

// TestGathered: payloads arrive as they were when the NIC took them, though each is written over as soon as its request has ended; also where
// a reply is there before its request's sending is reported.
func TestGathered(t *testing.T) {
	const ranks, workers, each, words = 3, 3, 15, 200
	all := nodes(t, ranks, transporttest.FabricConfig{Jitter: 100 * time.Microsecond}, true)
	var wg sync.WaitGroup
	for r, a := range all {
		for w := range workers {
			payload := mem.Of(make([]uint64, words))
			key, err := a.d.Register(payload, transport.LocalWrite)
			require.NoError(t, err)
			wg.Go(func() {
				for i := range each {
					to, cookie := (r+w+i)%ranks, uint64(w*each+i+1)
					for k := range words {
						payload.Word64(8 * k).Store(uint64(r)<<48 | cookie<<32 | uint64(k))
					}
					for taken := false; !taken; runtime.Gosched() {
						var err error
						if taken, err = a.am.Gather(a.eps[to], to, 1, [4]uint64{cookie}, transport.SGE{Mem: payload, LKey: key.LKey}, cookie); err != nil {
							t.Error(err)
							return
						}
					}
					var got any
					for there := false; !there; got, there = a.replies.LoadAndDelete(cookie) {
						runtime.Gosched()
					}
					back := []byte(got.(string))
					if len(back) != 1+8*words || back[0] != uint8(cookie) {
						t.Errorf("rank %d: request %d: a reply of %d bytes", r, cookie, len(back))
						continue
					}
					for k := range words {
						at := 1 + 8*(words-1-k)
						if v := binary.BigEndian.Uint64(back[at:]); v != uint64(r)<<48|cookie<<32|uint64(k) {
							t.Errorf("rank %d: request %d: word %d is %x", r, cookie, k, v)
							break
						}
					}
				}
			})
		}
	}
	wg.Wait()
	allFree(t, all)
}

// TestMadeAfterLost: a request to a rank that was given up before, but whose connection was still there to be posted to, ends as well: nobody
// else would tell its caller.
func TestMadeAfterLost(t *testing.T) {
	a, _ := alone(t)
	credits := a.credits[1]
	require.Empty(t, a.Lost(1))
	a.flushed(t)
	gone := func(int, bool) (transport.EP, Route) { return transport.EP{}, Gone }
	require.Equal(t, []Unsent{{1, 42}}, a.Again(gone))
	require.Empty(t, a.Again(gone))
	require.Empty(t, a.Lost(1), "it is told once")
	require.Len(t, a.free, ownRequests)
	require.Equal(t, credits, a.credits[1])
	require.False(t, a.Holds())
}
