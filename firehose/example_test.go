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

// A bucket's name says which range, which size and which place.
func ExampleBucket() {
	b := firehose.MakeBucket(7, 3, 5)
	fmt.Println(b.Range(), b.Order(), b.Index(), b.Weight(), "units")
	run := firehose.Run{First: b, Count: 4}
	fmt.Println(run.At(3).Index(), run.Weight())
	// Output:
	// 7 3 5 8 units
	// 8 32
}

// The size of buckets follows what a range is used for.
func ExampleBudget_Order() {
	var b firehose.Budget
	b, err := firehose.Split(firehose.Limits{Ranks: 2, Pinnable: 1 << 30, Unit: 4096, Page: 4096})
	if err != nil {
		fmt.Println(err)
		return
	}
	costs := firehose.Costs{RoundTrip: 5000, Register: 1000, RegisterByte: 0.1}
	scattered, _ := b.Order(firehose.Usage{Stretch: 8, Places: 1000, Reuse: 1}, costs, 8)
	long, _ := b.Order(firehose.Usage{Stretch: 64 << 20, Places: 1, Reuse: 1}, costs, 8)
	fmt.Println(scattered < long)
	// Output: true
}

// A move and its answer as they travel: a request for two buckets that gives up one, with a small put.
func ExampleMove() {
	m := firehose.Move{
		ID:  1,
		New: []firehose.Run{{First: firehose.MakeBucket(1, 0, 10), Count: 2}},
		Old: []firehose.Run{{First: firehose.MakeBucket(1, 0, 3), Count: 1}},
		Put: firehose.Put{Range: 1, Off: 40960, Data: []byte("hi")},
	}
	var got firehose.Move
	if err := got.Parse(m.Append(nil)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(got.New[0].Count, got.Old[0].First.Index(), string(got.Put.Data))
	var answer, back firehose.Reply
	answer.ID, answer.Keys = 1, []uint64{101, 102}
	var granted firehose.Status
	answer.Status = granted
	fmt.Println(back.Parse(answer.Append(nil)), back.Keys)
	// Output:
	// 2 3 hi
	// <nil> [101 102]
}

// What both sides have counted.
func ExampleHolder() {
	budget, err := firehose.Split(firehose.Limits{Ranks: 2, Pinnable: 8 * 4096, Peers: 8 * 4096, Unit: 4096, Page: 4096})
	if err != nil {
		fmt.Println(err)
		return
	}
	memory := firehose.Range{ID: 1, Start: 0x10000, Bytes: 1 << 20}
	var registrar firehose.Registrar = &printer{}
	owner := firehose.NewServer(budget, registrar, nil)
	if err := owner.Expose(memory); err != nil {
		fmt.Println(err)
		return
	}
	var origin *firehose.Holder
	origin, err = firehose.NewHolder(firehose.HolderConfig{Budget: budget, Payload: 1024})
	if err != nil {
		fmt.Println(err)
		return
	}
	var view *firehose.View
	view, err = origin.View(1, memory)
	if err != nil {
		fmt.Println(err)
		return
	}
	w := &wire{owner: owner}
	var m firehose.Mover = w
	var q firehose.Request
	state := origin.Acquire(view, &q, 0, 8)
	fmt.Println(state == firehose.Waiting)
	origin.Send(m)
	fmt.Println(origin.Reply(1, &w.replies[0]), q.State() == firehose.Ready)
	origin.Release(&q)
	held := origin.Stats()
	served := owner.Stats()
	fmt.Println(held.Misses, served.Moves, served.Registered)
	// Output:
	// true
	// register 1 from bucket 0 on
	// <nil> true
	// 1 1 1
}
