package firehose

import (
	"fmt"
	"testing"
)

// instant answers every move at once.
type instant struct {
	h   *Holder
	key uint64
	r   []Reply
}

func (m *instant) Move(_ int, mv *Move) (bool, error) {
	r := Reply{ID: mv.ID}
	for range count(mv.New) {
		m.key++
		r.Keys = append(r.Keys, m.key)
	}
	m.r = append(m.r, r)
	return true, nil
}

// holding returns a Holder that holds n buckets, and their view.
func holdingOf(tb testing.TB, n int64) (*Holder, *View) {
	b, err := Split(Limits{Ranks: 2, Pinnable: n * unit, Peers: n * unit, Unit: unit, Page: unit})
	if err != nil {
		tb.Fatal(err)
	}
	h, err := NewHolder(HolderConfig{Budget: b, Payload: 4032})
	if err != nil {
		tb.Fatal(err)
	}
	v, err := h.View(1, Range{ID: 1, Start: start, Bytes: uint64(2*n) * unit})
	if err != nil {
		tb.Fatal(err)
	}
	m := &instant{h: h}
	var q Request
	for i := range uint64(n) {
		h.Acquire(v, &q, i*unit, 1)
		h.Send(m)
		for i := range m.r {
			if err := h.Reply(1, &m.r[i]); err != nil {
				tb.Fatal(err)
			}
		}
		m.r = m.r[:0]
		h.Release(&q)
	}
	return h, v
}

// TestHitAllocatesNothing pins what the path of a put may cost.
func TestHitAllocatesNothing(t *testing.T) {
	h, v := holdingOf(t, 100)
	var q Request
	i := uint64(0)
	if n := testing.AllocsPerRun(1000, func() {
		i = (i + 7) % 100
		if h.Acquire(v, &q, i*unit, 8) != Ready || q.Key(0) != i+1 {
			t.Fatal("not a hit")
		}
		h.Release(&q)
	}); n != 0 {
		t.Fatalf("a hit makes %v allocations", n)
	}
	if n := testing.AllocsPerRun(1000, func() {
		h.Acquire(v, &q, 10*unit, 4*unit)
		h.Release(&q)
	}); n != 0 {
		t.Fatalf("a hit on four buckets makes %v allocations", n)
	}
}

// BenchmarkHit is the lookup of a bucket that is held: in use already, and with its release.
func BenchmarkHit(b *testing.B) {
	for _, n := range []int64{10, 1000, 100_000} {
		h, v := holdingOf(b, n)
		b.Run(fmt.Sprintf("acquire/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			keep := make([]Request, 1024)
			for i := range keep {
				h.Acquire(v, &keep[i], uint64(i)%uint64(n)*unit, 8)
			}
			var q Request
			i := uint64(0)
			for b.Loop() {
				h.Acquire(v, &q, i&1023%uint64(n)*unit, 8)
				i++
			}
			b.StopTimer()
			for k := range h.peers[1].slab {
				h.peers[1].slab[k].ref = 1 // what the loop has taken
			}
			for i := range keep {
				if uint64(i) < uint64(n) {
					h.Release(&keep[i])
				}
			}
		})
		b.Run(fmt.Sprintf("acquire and release/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			h, v := holdingOf(b, n)
			var q Request
			i := uint64(0)
			for b.Loop() {
				h.Acquire(v, &q, i%uint64(n)*unit, 8)
				h.Release(&q)
				i += 7919
			}
		})
	}
}

// BenchmarkMiss is the accounting of a move at both ends, without message and registration.
func BenchmarkMiss(b *testing.B) {
	b.ReportAllocs()
	h, v := holdingOf(b, 1000)
	m := &instant{h: h, key: 1000}
	var q Request
	i := uint64(1000)
	for b.Loop() {
		h.Acquire(v, &q, i%2000*unit, 8)
		h.Send(m)
		if err := h.Reply(1, &m.r[0]); err != nil {
			b.Fatal(err)
		}
		m.r = m.r[:0]
		h.Release(&q)
		i++
	}
}
