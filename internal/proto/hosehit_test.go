package proto

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// idling is a NIC that, when told so, says that all is done and does nothing: what is left is the engine's own time.
type idling struct {
	transport.Domain
	on   atomic.Bool
	mu   sync.Mutex
	done []transport.Completion
}

func (d *idling) Post(ops []transport.Op) (int, error) {
	if !d.on.Load() {
		return d.Domain.Post(ops)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range ops {
		d.done = append(d.done, transport.Completion{Cookie: ops[i].Cookie, EP: ops[i].EP, Kind: ops[i].Kind})
	}
	return len(ops), nil
}

func (d *idling) Poll(cq []transport.Completion) (int, error) {
	if !d.on.Load() {
		return d.Domain.Poll(cq)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := copy(cq, d.done)
	d.done = d.done[:copy(d.done, d.done[n:])]
	return n, nil
}

// BenchmarkHit is the engine's part of a put and of a get, each with a flush, of memory that is registered as a whole, and of
// buckets that are held: the NIC takes no time.
func BenchmarkHit(b *testing.B) {
	for _, where := range []string{"whole", "buckets"} {
		c := transporttest.FabricConfig{}
		if where == "buckets" {
			c.MaxPinned = tightPins
		}
		b.Run(where, func(b *testing.B) {
			var nic *idling
			tm := newTeamOf(b, 2, tightBytes, c, func(d transport.Domain) transport.Domain { nic = &idling{Domain: d}; return nic })
			e, to := tm.e[0], &tm.of[0][1]
			require.Equal(b, c.MaxPinned != 0, to.hosed != nil)
			for _, bytes := range []int{8, 4096} {
				user := filled(bytes)
				for name, do := range map[string]func(*Remote, int, mem.Range) error{"put": e.Put, "get": e.Get} {
					both := func() {
						if err := do(to, 0, user); err != nil {
							b.Fatal(err)
						}
						if err := e.Flush(to); err != nil {
							b.Fatal(err)
						}
					}
					for range 40 { // buckets are held, costs are measured
						both()
					}
					nic.on.Store(true)
					b.Run(fmt.Sprint(name, "/", bytes), func(b *testing.B) {
						b.ReportAllocs()
						for b.Loop() {
							both()
						}
					})
					nic.on.Store(false)
				}
			}
		})
	}
}
