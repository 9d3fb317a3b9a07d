package am

import (
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/soft"
	"gopgas/transport/tcp"
	"gopgas/transport/transporttest"
)

// node is a rank with a poller of its own.
type node struct {
	t       *testing.T
	d       transport.Domain
	am      *AM
	eps     []transport.EP
	replies sync.Map // cookie → status and payload, as a string
	served  atomic.Int64
	stop    context.CancelFunc
	ended   chan struct{}
}

const base = 1 << 63

// nodes makes n connected ranks whose handler sends back the payload, reversed, and the sum of the words.
func nodes(t *testing.T, n int, c transporttest.FabricConfig, late bool) []*node {
	f := transporttest.NewFabric(n, c)
	all := make([]*node, n)
	for r := range n {
		d, err := f.Provider(r).Open(t.Context(), transport.Config{Rank: r, Size: n, Sched: sched.Goroutine(n)})
		require.NoError(t, err)
		if late {
			d = transporttest.Faulty(d, transporttest.FaultPlan{Seed: uint64(r + 1), Delays: 60})
		}
		all[r] = &node{t: t, d: d, ended: make(chan struct{})}
		all[r].am, err = New(d, r, n, 0, base, all[r].handle)
		require.NoError(t, err)
	}
	for _, a := range all {
		for r, b := range all {
			ep, err := a.d.Connect(t.Context(), r, b.d.Address())
			require.NoError(t, err)
			a.eps = append(a.eps, ep)
		}
		ctx, stop := context.WithCancel(t.Context())
		a.stop = stop
		go a.poll(ctx)
	}
	t.Cleanup(func() {
		for _, a := range all {
			a.stop()
			<-a.ended
		}
		for _, a := range all {
			require.NoError(t, a.d.Close())
		}
	})
	return all
}

func (a *node) handle(r Request, out []byte) (int, uint8) {
	a.served.Add(1)
	for i, b := range r.Payload {
		out[len(r.Payload)-1-i] = b
	}
	var sum uint64
	for _, v := range r.Args {
		sum += v
	}
	return len(r.Payload), uint8(sum)
}

func (a *node) poll(ctx context.Context) {
	defer close(a.ended)
	var cq [32]transport.Completion
	for {
		if a.d.Wait(ctx) != nil {
			return
		}
		n, _ := a.d.Poll(cq[:])
		for i := range cq[:n] {
			if !a.am.Owns(&cq[i]) {
				continue
			}
			if r, ok, err := a.am.Arrived(&cq[i]); ok {
				if err == nil {
					a.replies.Store(r.Cookie, string(append([]byte{r.Status}, r.Payload...)))
				}
				_ = a.am.Release(r)
			}
		}
		_ = a.am.Flush()
	}
}

// call sends a request and waits for its reply.
func (a *node) call(to int, cookie uint64, args [4]uint64, payload []byte) string {
	for {
		ok, err := a.am.Request(a.eps[to], to, 1, args, payload, cookie)
		if err != nil {
			a.t.Error(err)
			return ""
		}
		if ok {
			break
		}
		runtime.Gosched()
	}
	for {
		if v, ok := a.replies.LoadAndDelete(cookie); ok {
			return v.(string)
		}
		runtime.Gosched()
	}
}

func TestRequestAndReply(t *testing.T) {
	all := nodes(t, 3, transporttest.FabricConfig{}, false)
	require.Equal(t, "\x0acba", all[0].call(2, 1, [4]uint64{1, 2, 3, 4}, []byte("abc")))
	require.Equal(t, "\x00", all[0].call(0, 2, [4]uint64{}, nil), "to oneself")
	long := make([]byte, all[1].am.MaxPayload())
	long[0] = 7
	got := all[1].call(0, 3, [4]uint64{}, long)
	require.Len(t, got, 1+len(long))
	require.Equal(t, byte(7), got[len(got)-1])
}

// TestSmallMessages: on a NIC with small messages the payload is smaller too; on one with none to speak of there are none.
func TestSmallMessages(t *testing.T) {
	all := nodes(t, 2, transporttest.FabricConfig{MaxMessage: 300}, false)
	require.Equal(t, 296-64, all[0].am.MaxPayload())
	long := make([]byte, all[0].am.MaxPayload())
	require.Len(t, all[0].call(1, 1, [4]uint64{}, long), 1+len(long))

	d, err := transporttest.NewFabric(1, transporttest.FabricConfig{MaxMessage: 127}).Provider(0).Open(t.Context(), transport.Config{Size: 1})
	require.NoError(t, err)
	defer d.Close()
	_, err = New(d, 0, 1, 0, 0, nil)
	require.ErrorIs(t, err, transport.ErrUnsupported)
}

// TestManyRanks: a NIC that nobody has told how many buffers to have room for has room for those of a job of any size; one that has none says so.
func TestManyRanks(t *testing.T) {
	nics := []transport.Provider{tcp.New(tcp.Config{MaxPinned: 1 << 30}), soft.New(soft.Config{MaxPinned: 1 << 30})}
	open := func(p transport.Provider, ranks int) error {
		t.Helper()
		d, err := p.Open(t.Context(), transport.Config{Size: ranks, Secret: []byte("secret"), Sched: sched.Goroutine(2)})
		require.NoError(t, err)
		_, err = New(d, 0, ranks, 64, base, nil)
		require.NoError(t, d.Close())
		return err
	}
	for _, ranks := range []int{1, 64, 112, 113, 120, 128, 512, 1024, 1025, 3000} {
		for _, p := range append(nics, transporttest.NewFabric(ranks, transporttest.FabricConfig{}).Provider(0)) {
			require.NoError(t, open(p, ranks), "%s, %d ranks", p.Name(), ranks)
		}
	}
	err := open(tcp.New(tcp.Config{MaxPinned: 1 << 30, MaxRecv: 1024}), 128)
	require.ErrorIs(t, err, transport.ErrLimit)
	require.ErrorContains(t, err, "of 128")
	require.ErrorContains(t, err, "room for 1024")
	require.ErrorContains(t, err, "1152")
}

// allFree waits until every slot is free: a request's is when the NIC has reported that it is sent, which may be after its reply is here.
func allFree(t *testing.T, all []*node) {
	t.Helper()
	for r, a := range all {
		free := func() int {
			a.am.mu.Lock()
			defer a.am.mu.Unlock()
			return len(a.am.free)
		}
		require.Eventually(t, func() bool { return free() >= ownRequests }, 10*time.Second, time.Millisecond, "rank %d", r)
		require.Equal(t, ownRequests, free(), "rank %d", r)
	}
}

// TestAllSendToOne: nobody is stuck when everybody sends to one rank more than it has buffers for, on a NIC with little
// room, and the one sends to all.
func TestAllSendToOne(t *testing.T) {
	for name, c := range map[string]transporttest.FabricConfig{"roomy": {}, "narrow": {MaxPost: 2, Jitter: 1000}, "late": {}} {
		t.Run(name, func(t *testing.T) {
			const ranks, each, workers = 6, 100, 9    // more than a rank has credits for another
			all := nodes(t, ranks, c, name == "late") // late: a reply is answered before its sending is reported
			var wg sync.WaitGroup
			for r, a := range all {
				for w := range workers {
					wg.Go(func() {
						for i := range each {
							to := 0
							if r == 0 {
								to = 1 + i%(ranks-1)
							}
							var payload [8]byte
							binary.LittleEndian.PutUint64(payload[:], uint64(i))
							got := a.call(to, uint64(w*each+i+1), [4]uint64{uint64(i)}, payload[:])
							if len(got) != 9 || got[0] != byte(i) || got[8] != payload[0] {
								t.Errorf("rank %d: request %d: reply %q", r, i, got)
							}
						}
					})
				}
			}
			wg.Wait()
			require.Equal(t, int64((ranks-1)*each*workers), all[0].served.Load())
			allFree(t, all)
		})
	}
}

func TestLostRequestsEnd(t *testing.T) {
	f := transporttest.NewFabric(2, transporttest.FabricConfig{})
	var ams [2]*AM
	var ds [2]transport.Domain
	for r := range 2 {
		d, err := f.Provider(r).Open(t.Context(), transport.Config{Rank: r, Size: 2, Sched: sched.Goroutine(2)})
		require.NoError(t, err)
		ds[r] = d
		ams[r], err = New(d, r, 2, 0, base, func(Request, []byte) (int, uint8) { return 0, 0 })
		require.NoError(t, err)
	}
	ep, err := ds[0].Connect(t.Context(), 1, ds[1].Address())
	require.NoError(t, err)
	ok, err := ams[0].Request(ep, 1, 1, [4]uint64{}, nil, 42)
	require.True(t, ok)
	require.NoError(t, err)
	f.Kill(1)
	require.Equal(t, []uint64{42}, ams[0].Lost(1))
	require.Empty(t, ams[0].Lost(1))
	require.NoError(t, ds[0].Close())
}

// TestLateFailure: the failed sending of a request that Lost has ended ends no other request.
func TestLateFailure(t *testing.T) {
	f := transporttest.NewFabric(3, transporttest.FabricConfig{})
	var ds [3]transport.Domain
	for r := range ds {
		d, err := f.Provider(r).Open(t.Context(), transport.Config{Rank: r, Size: 3, Sched: sched.Goroutine(3)})
		require.NoError(t, err)
		ds[r] = d
	}
	a, err := New(ds[0], 0, 3, 0, base, func(Request, []byte) (int, uint8) { return 0, 0 })
	require.NoError(t, err)
	var eps [3]transport.EP
	for r := 1; r < 3; r++ {
		eps[r], err = ds[0].Connect(t.Context(), r, ds[r].Address())
		require.NoError(t, err)
	}
	ok, err := a.Request(eps[2], 2, 1, [4]uint64{}, nil, 42)
	require.True(t, ok)
	require.NoError(t, err)
	slotOf := func(cookie uint64) int {
		return slices.IndexFunc(a.slots, func(s slot) bool { return s.cookie == cookie })
	}
	place := len(a.free) // the request's slot is not in it
	require.Equal(t, []uint64{42}, a.Lost(2))
	require.Len(t, a.free, place, "the NIC has its buffer still")
	ok, err = a.Request(eps[1], 1, 1, [4]uint64{}, nil, 43)
	require.True(t, ok)
	require.NoError(t, err)
	require.NotEqual(t, slotOf(42), slotOf(43))
	late := func(cookie uint64, ep transport.EP) transport.Completion {
		return transport.Completion{
			Kind: transport.OpSend, Status: transport.StatusPeerGone, EP: ep, Cookie: base + uint64(a.nRecv+slotOf(cookie)),
		}
	}
	c := late(42, eps[2])
	_, ok, err = a.Arrived(&c)
	require.False(t, ok)
	require.NoError(t, err)
	require.Len(t, a.free, place, "the slot is free again, and another one is not")
	c = late(43, eps[1])
	r, ok, err := a.Arrived(&c)
	require.True(t, ok)
	require.ErrorIs(t, err, ErrLost)
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.Equal(t, uint64(43), r.Cookie)
	for _, d := range ds {
		require.NoError(t, d.Close())
	}
}

// FuzzDecode: no message makes the parser crash or believe in more than it was given.
func FuzzDecode(f *testing.F) {
	var good [headerBytes + 8]byte
	header{kind: kindRequest, n: 8}.encode(good[:])
	f.Add(good[:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decode(b)
		if err == nil && (int(h.n) > len(b)-headerBytes || h.slot >= ownRequests) {
			t.Fatalf("%+v of %d bytes", h, len(b))
		}
	})
}

// TestLongBusyWithAnother: a slot through which so many requests went to one rank that a count of them in 32 bits would be half around, or all around, serves
// another rank as before.
func TestLongBusyWithAnother(t *testing.T) {
	a, nic := alone(t)
	served := 0
	a.handler = func(Request, []byte) (int, uint8) { served++; return 0, 0 }
	ep := transport.EP{Index: 1, Incarnation: 1}
	for i, between := range []int{0, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		a.slots[a.free[len(a.free)-1]].seq += uint64(between) // requests to somebody else
		nic.post = func(ops []transport.Op) (int, error) {
			copy(a.buffer(0).Data(), ops[0].SGE[0].Mem.Data())
			return 1, nil
		}
		taken, err := a.Request(ep, 1, 3, [4]uint64{}, nil, 42)
		require.NoError(t, err)
		require.True(t, taken)
		nic.post = nil
		_, _, err = a.Arrived(&transport.Completion{Kind: transport.OpRecv, Cookie: base, Bytes: headerBytes, EP: ep}) // as at its target
		require.NoError(t, err)
		require.Equal(t, i+1, served, "%d requests between", between)
		sent, answer := a.reported(transport.StatusOK), a.answer(0)
		for _, c := range []transport.Completion{sent, answer} {
			_, _, err = a.Arrived(&c)
			require.NoError(t, err)
		}
		require.Len(t, a.free, ownRequests)
	}
}
