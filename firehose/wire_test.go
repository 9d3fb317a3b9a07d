package firehose

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWireForms(t *testing.T) {
	a, b := MakeBucket(3, 2, 77), MakeBucket(maxRange, mostOrder, indexMask)
	m := Move{
		ID: 1<<63 | 5, New: []Run{{a, 9}, {b, 1 << 31}}, Old: []Run{{b, 1}},
		Put: Put{Range: 3, Off: 1 << 61, Data: []byte("put")},
	}
	raw := m.Append([]byte("before"))[6:]
	require.Len(t, raw, moveHeader+3*runBytes+3)
	got := Move{New: make([]Run, 7), Old: make([]Run, 1)}
	require.NoError(t, got.Parse(raw))
	require.Equal(t, m, got)
	for n := range moveHeader + 3*runBytes {
		require.ErrorIs(t, got.Parse(raw[:n]), ErrMove, "%d bytes", n)
	}

	r := Reply{ID: 1<<32 | 7, Status: statusGranted, Stored: true, Keys: []uint64{1, 1 << 63}}
	raw = r.Append(nil)
	var back Reply
	require.NoError(t, back.Parse(raw))
	require.Equal(t, r, back)
	for n := range raw {
		require.ErrorIs(t, back.Parse(raw[:n]), ErrMove, "%d bytes", n)
	}
	require.ErrorIs(t, back.Parse(append(raw, 0)), ErrMove)
	raw[8] = byte(statusMalformed) + 1
	require.ErrorIs(t, back.Parse(raw), ErrMove)
}

// TestWireLimits: whatever a request needs fits into the message, and its keys into the reply.
func TestWireLimits(t *testing.T) {
	for payload := LeastPayload; payload < 5000; payload++ {
		w := limitsOf(payload)
		require.Positive(t, w.buckets)
		worst := (w.buckets+1)/2 + w.buckets // every other bucket is missing, and each takes a victim of its own
		require.LessOrEqual(t, worst, w.runs)
		require.LessOrEqual(t, moveHeader+w.runs*runBytes, payload)
		require.LessOrEqual(t, replyHeader+w.buckets*keyBytes, payload)
		require.True(t, w.fits(w.runs, 0))
		require.False(t, w.fits(w.runs, payload))
	}
}

func FuzzMove(f *testing.F) {
	m := Move{ID: 1, New: []Run{{MakeBucket(1, 0, 0), 1}}, Old: []Run{{MakeBucket(1, 0, 5), 2}}, Put: Put{Range: 1, Data: []byte("x")}}
	f.Add(m.Append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Move
		if m.Parse(b) != nil {
			return
		}
		require.Equal(t, b, m.Append(nil), "what was understood is written as it was")
		// Whatever it asks for, a server survives it and stays within its budget.
		n := newNet(t, config{ranks: 2, f: 4, v: 1})
		n.use(0, 5)
		var r Reply
		if n.owners[1].s.Serve(0, &m, &r) && r.Status == statusGranted {
			require.Len(t, r.Keys, count(m.New))
		}
		n.checkServer(1, n.owners[1])
	})
}

func FuzzReply(f *testing.F) {
	r := Reply{ID: 0, Keys: []uint64{1, 2}}
	f.Add(r.Append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		n := newNet(t, config{ranks: 2, f: 4, v: 1})
		q := n.pin(0, 2)
		var r Reply
		if r.Parse(b) == nil {
			_ = n.holders[0].Reply(1, &r) // it may be the answer
		}
		require.LessOrEqual(t, n.holders[0].Used(1), n.budget.Share)
		require.NotEqual(t, Idle, q.State())
	})
}
