package firehose_test

import (
	"fmt"

	"gopgas/firehose"
)

// wire joins one origin and one owner without a network.
type wire struct {
	owner   *firehose.Server
	replies []firehose.Reply
}

// Move lets the owner answer at once; the answer arrives later.
func (w *wire) Move(_ int, m *firehose.Move) (bool, error) {
	var r firehose.Reply
	if w.owner.Serve(0, m, &r) {
		w.replies = append(w.replies, r)
	}
	return true, nil
}

// printer stands for a NIC.
type printer struct{ next uint64 }

func (p *printer) Register(_ firehose.Range, run firehose.Run, pins []firehose.Pin) error {
	fmt.Printf("register %d from bucket %d on\n", run.Count, run.First.Index())
	for i := range pins {
		p.next++
		pins[i] = firehose.Pin{Key: 100 + p.next, Handle: p.next}
	}
	return nil
}

func (p *printer) Deregister(_ firehose.Range, run firehose.Run, _ []firehose.Pin) error {
	fmt.Printf("deregister %d from bucket %d on\n", run.Count, run.First.Index())
	return nil
}

// Rank 0 reaches memory of rank 1, of which 8 pages may be registered for it.
func Example() {
	budget, err := firehose.Split(firehose.Limits{Ranks: 2, Pinnable: 8 * 4096, Peers: 8 * 4096, Unit: 4096, Page: 4096})
	if err != nil {
		fmt.Println(err)
		return
	}
	memory := firehose.Range{ID: 1, Start: 0x10000, Bytes: 1 << 20}
	owner := firehose.NewServer(budget, &printer{}, nil)
	_ = owner.Expose(memory)
	origin, _ := firehose.NewHolder(firehose.HolderConfig{Budget: budget, Payload: 1024})
	view, _ := origin.View(1, memory)
	w := &wire{owner: owner}

	var q firehose.Request
	for _, off := range []uint64{5000, 6000, 900_000} {
		if origin.Acquire(view, &q, off, 5000) == firehose.Waiting {
			origin.Send(w)
			for i := range w.replies {
				_ = origin.Reply(1, &w.replies[i])
			}
			w.replies = w.replies[:0]
		}
		key, end := q.Part(off)
		fmt.Printf("%d bytes at %d: key %d up to %d\n", 5000, off, key, end)
		origin.Release(&q) // the operation is complete at the target
	}
	fmt.Printf("hits %d, misses %d\n", origin.Stats().Hits, origin.Stats().Misses)

	// Output:
	// register 2 from bucket 1 on
	// 5000 bytes at 5000: key 101 up to 8192
	// 5000 bytes at 6000: key 101 up to 8192
	// register 2 from bucket 219 on
	// 5000 bytes at 900000: key 103 up to 901120
	// hits 1, misses 2
}
