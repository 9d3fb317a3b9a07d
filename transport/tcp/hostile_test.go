package tcp

import (
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/wire"
	"gopgas/transport"
)

// A rank that knows the secret may still do anything. Here it does, one thing after another: its connection is
// dropped, no byte outside a region is touched, and everybody else goes on.

func frame(h wire.Header, payload ...byte) []byte { return append(h.Append(nil), payload...) }

// TestBrokenRules sends what no honest rank sends. The connection must be dropped without an answer to it.
func TestBrokenRules(t *testing.T) {
	patient := Config{FailureTimeout: time.Hour} // it must not be for silence
	a := openRank(t, 0, 3, patient, transport.Config{})
	honest := openRank(t, 2, 3, patient, transport.Config{})
	at, key := a.open.Addr(), a.reg.RKey
	noise := make([]byte, 100_000)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	unknown := frame(wire.Header{Kind: wire.Ack})
	unknown[0] = 99
	for name, says := range map[string][]byte{
		"an unknown kind":               unknown,
		"noise":                         noise,
		"zeros":                         make([]byte, 1000),
		"a reserved bit":                frame(wire.Header{Kind: wire.Ack, Flags: 0x80}),
		"a length where there is none":  frame(wire.Header{Kind: wire.Ack, Len: 5}),
		"more than any payload":         frame(wire.Header{Kind: wire.Write, Len: wire.MaxPayload + 1, RAddr: at, RKey: key}),
		"a request out of turn":         frame(wire.Header{Kind: wire.Write, Seq: 1, RAddr: at, RKey: key}),
		"a request a second time":       append(frame(wire.Header{Kind: wire.Write, RAddr: at, RKey: key}), frame(wire.Header{Kind: wire.Write, RAddr: at, RKey: key})...),
		"an acknowledgement of nothing": frame(wire.Header{Kind: wire.Ack, Ack: 1}),
		"one of the end of time":        frame(wire.Header{Kind: wire.Alive, Ack: ^uint64(0)}),
		"bytes that nobody asked for":   frame(wire.Header{Kind: wire.Data, Len: 8}, 1, 2, 3, 4, 5, 6, 7, 8),
		"many of them":                  frame(wire.Header{Kind: wire.Data, Len: 1 << 20}),
		"a value that nobody asked for": frame(wire.Header{Kind: wire.Value, Arg0: 1}),
		"a refusal of nothing":          frame(wire.Header{Kind: wire.Refuse, Status: uint8(transport.StatusRemoteAccess)}),
		"waiting with nothing":          frame(wire.Header{Kind: wire.NotReady}),
		"a call for nothing":            frame(wire.Header{Kind: wire.Ready}),
	} {
		t.Run(name, func(t *testing.T) {
			s := knock(t, a).enter()
			_, _ = s.Write(says) // it may be dropped in the middle
			for _, h := range frames(t, s.dropped()) {
				require.Contains(t, []wire.Kind{wire.Alive, wire.Ack, wire.Bye}, h.Kind)
			}
			a.untouched(t, true)
			honest.serves(t, a)
		})
	}
	require.False(t, a.stop.Load())
}

// TestUncalled sends a request that it was told to wait with again and again, and takes no answer: the second time is one too many.
func TestUncalled(t *testing.T) {
	patient := Config{FailureTimeout: time.Hour}
	a := openRank(t, 0, 3, patient, transport.Config{})
	honest := openRank(t, 2, 3, patient, transport.Config{})
	read := frame(wire.Header{Kind: wire.Read, Len: testOpen, RAddr: a.open.Addr(), RKey: a.reg.RKey})
	for name, c := range map[string]struct {
		before []byte
		h      wire.Header
	}{
		"no buffer": {nil, wire.Header{Kind: wire.Send, Len: 4}},
		"lent":      {read, wire.Header{Kind: wire.Write, Len: 8, Seq: 1, RAddr: a.open.Addr(), RKey: a.reg.RKey}},
	} {
		t.Run(name, func(t *testing.T) {
			s := knock(t, a)
			require.NoError(t, s.Conn.(*net.TCPConn).SetReadBuffer(4096)) // so that what is read stays lent
			s.enter()
			s.send(c.before)
			says := frame(c.h, make([]byte, c.h.Len)...)
			told := 0
			for range 10_000 {
				if _, err := s.Write(says); err != nil {
					break // dropped
				}
			}
			for _, h := range frames(t, s.dropped()) {
				if h.Kind == wire.NotReady {
					told++
				}
			}
			require.LessOrEqual(t, told, 1)
			a.recvs.mu.Lock()
			waiting := len(a.recvs.waiting)
			a.recvs.mu.Unlock()
			require.Zero(t, waiting, "what has ended waits for nothing")
			honest.serves(t, a)
		})
	}
}

// TestForbidden asks for memory that the keys do not give. Each is refused, and nothing is touched.
func TestForbidden(t *testing.T) {
	a := openRank(t, 0, 3, quick, transport.Config{})
	honest := openRank(t, 2, 3, quick, transport.Config{})
	at, key := a.open.Addr(), a.reg.RKey
	big := make([]byte, 100_000)
	for i := range big {
		big[i] = 0xee
	}
	small := big[:64]
	for name, c := range map[string]struct {
		h       wire.Header
		payload []byte
	}{
		"no key":                    {wire.Header{Kind: wire.Write, RAddr: at}, small},
		"the next key":              {wire.Header{Kind: wire.Write, RAddr: at, RKey: key + 1}, small},
		"before the region":         {wire.Header{Kind: wire.Write, RAddr: at - 1, RKey: key}, small},
		"over its end":              {wire.Header{Kind: wire.Write, RAddr: at + testOpen - 63, RKey: key}, small},
		"over its end, long":        {wire.Header{Kind: wire.Write, RAddr: at + testOpen - 99_999, RKey: key}, big},
		"over the end of addresses": {wire.Header{Kind: wire.Write, RAddr: ^uint64(0) - 3, RKey: key}, small},
		"a read over its end":       {wire.Header{Kind: wire.Read, RAddr: at + 8, RKey: key, Len: testOpen}, nil},
		"a read of everything":      {wire.Header{Kind: wire.Read, RAddr: at, RKey: key, Len: wire.MaxPayload}, nil},
		"an atomic beside a word":   {wire.Header{Kind: wire.FetchAdd, RAddr: at + 4, RKey: key, Arg0: 1}, nil},
		"an atomic over its end":    {wire.Header{Kind: wire.CompareSwap, RAddr: at + testOpen - 4, RKey: key, Arg1: 1}, nil},
		"a local key":               {wire.Header{Kind: wire.Write, RAddr: at, RKey: a.reg.LKey}, small},
		"with an immediate":         {wire.Header{Kind: wire.WriteImm, RAddr: at - 8, RKey: key}, small},
		"long with an immediate":    {wire.Header{Kind: wire.WriteImm, RAddr: at - 8, RKey: key}, big},
	} {
		t.Run(name, func(t *testing.T) {
			s := knock(t, a).enter()
			if c.payload != nil {
				c.h.Len = uint32(len(c.payload))
			}
			_, _ = s.Write(frame(c.h, c.payload...))
			// What comes behind is not done any more.
			_, _ = s.Write(frame(wire.Header{Kind: wire.Write, Seq: 1, Len: 64, RAddr: at, RKey: key}, small...))
			require.NoError(t, s.Conn.(*net.TCPConn).CloseWrite())
			refused, said := false, frames(t, s.dropped())
			for _, h := range said {
				refused = refused || h.Kind == wire.Refuse && transport.Status(h.Status) == transport.StatusRemoteAccess && h.Seq == 0
			}
			require.True(t, refused, "no refusal came: %+v", said)
			a.untouched(t, true)
			honest.serves(t, a)
		})
	}
}

// TestCutOff ends the connection within a frame, at every place that matters. What was not complete is not done.
func TestCutOff(t *testing.T) {
	a := openRank(t, 0, 3, quick, transport.Config{})
	honest := openRank(t, 2, 3, quick, transport.Config{})
	whole := frame(wire.Header{Kind: wire.Write, Len: 64, RAddr: a.open.Addr(), RKey: a.reg.RKey}, make([]byte, 64)...)
	for i := len(whole) - 64; i < len(whole); i++ {
		whole[i] = 0xee
	}
	for _, n := range []int{0, 1, 23, 24, 39, 40, 41, 103} {
		s := knock(t, a).enter()
		s.send(whole[:n])
		require.NoError(t, s.Conn.(*net.TCPConn).CloseWrite())
		s.dropped()
		a.untouched(t, true)
	}
	honest.serves(t, a)
}

// TestStalled says half of a long write and then nothing: its region can be deregistered meanwhile, and the
// connection is dropped when the failure timeout is over.
func TestStalled(t *testing.T) {
	const timeout = 3 * time.Second
	a := openRank(t, 0, 3, Config{FailureTimeout: timeout}, transport.Config{})
	honest := openRank(t, 2, 3, Config{FailureTimeout: timeout}, transport.Config{}) // else the other's silence is too long for it
	s := knock(t, a).enter()
	s.send(frame(wire.Header{Kind: wire.Write, Len: 100_000, RAddr: a.open.Addr(), RKey: a.reg.RKey}, make([]byte, 50_000)...))
	time.Sleep(20 * time.Millisecond)
	start := time.Now()
	require.NoError(t, a.Deregister(a.reg))
	require.Less(t, time.Since(start), timeout-time.Second, "a peer's silence holds up a deregistration")
	var err error
	a.reg, err = a.Register(a.open, transport.AllAccess)
	require.NoError(t, err)
	honest.serves(t, a)
	s.dropped()
	require.Less(t, time.Since(start), 5*timeout)
	c := a.await(t, func(c transport.Completion) bool { return c.Kind == transport.OpPeerDown })
	require.EqualValues(t, 1, c.EP.Index)
	a.untouched(t, true)
}

// TestGreedy asks for more and more and takes nothing of it: what this costs the rank is bounded, by count and by
// time, and so is a flood of messages for which there is no buffer.
func TestGreedy(t *testing.T) {
	for name, h := range map[string]wire.Header{
		"small reads": {Kind: wire.Read, Len: 4096},
		"large reads": {Kind: wire.Read, Len: testOpen},
		"atomics":     {Kind: wire.FetchAdd},
		"messages":    {Kind: wire.Send, Len: 4},
	} {
		t.Run(name, func(t *testing.T) {
			a := openRank(t, 0, 3, quick, transport.Config{})
			honest := openRank(t, 2, 3, quick, transport.Config{})
			s := knock(t, a).enter()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			h.RAddr, h.RKey = a.open.Addr(), a.reg.RKey
			var all []byte
			for i := range 200_000 {
				h.Seq = uint64(i)
				all = append(h.Append(all[:0]), make([]byte, h.Payload())...)
				if _, err := s.Write(all); err != nil {
					break // dropped
				}
			}
			runtime.ReadMemStats(&after)
			require.Less(t, int64(after.HeapInuse)-int64(before.HeapInuse), int64(16<<20))
			honest.serves(t, a)
			s.dropped()
			require.NoError(t, a.Deregister(a.reg), "a lent region comes back")
		})
	}
}
