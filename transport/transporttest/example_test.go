package transporttest_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// A provider's test gives Run a function that opens domains: transporttest.Run(t, open, options).
func ExampleRun() {
	var open transporttest.Open = func(_ *testing.T, n int) []transport.Domain {
		fabric := transporttest.NewFabric(n, transporttest.FabricConfig{NoAtomics: true})
		var all []transport.Domain
		for rank := range n {
			d, err := fabric.Provider(rank).Open(context.Background(), transport.Config{Rank: rank, Size: n, Sched: sched.Goroutine(n)})
			if err != nil {
				fmt.Println(err)
				return nil
			}
			all = append(all, d)
		}
		return all
	}
	options := transporttest.Options{Rounds: 100, Ops: 500}
	domains := open(nil, 2)
	fmt.Println(len(domains), "domains, atomics", domains[0].Caps().Atomics64, "and", options.Ops, "operations a test")
	for _, d := range domains {
		fmt.Println(d.Close())
	}
	// Output:
	// 2 domains, atomics false and 500 operations a test
	// <nil>
	// <nil>
}

// Trace tells what crosses the seam; Faulty makes some of it go wrong.
func ExampleTrace() {
	ctx := context.Background()
	var record transporttest.Recorder
	var plan transporttest.FaultPlan
	plan.BreakAt = 2 // the second operation breaks its connection
	d, err := transporttest.NewFabric(1, transporttest.FabricConfig{}).Provider(0).
		Open(ctx, transport.Config{Size: 1, Sched: sched.Goroutine(1)})
	if err != nil {
		fmt.Println(err)
		return
	}
	d = transporttest.Trace(transporttest.Faulty(d, plan), record.Record)
	page := mem.Of(make([]uint64, 512))
	key, err := d.Register(page, transport.AllAccess)
	if err != nil {
		fmt.Println(err)
		return
	}
	self, err := d.Connect(ctx, 0, d.Address())
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		op := transport.Op{Kind: transport.OpWrite, Flags: transport.FlagSignaled, EP: self, RAddr: page.Addr(), RKey: key.RKey, NSGE: 1}
		op.SGE[0] = transport.SGE{Mem: page.Slice(8, 8), LKey: key.LKey}
		if _, err := d.Post([]transport.Op{op}); err != nil {
			fmt.Println(err)
		}
		var cq [1]transport.Completion
		for n := 0; n == 0; {
			n, _ = d.Poll(cq[:])
		}
	}
	var kinds [transporttest.EventDisconnect + 1]int
	var e transporttest.Event
	for _, e = range record.Events() {
		call := e.Call
		kinds[call]++
	}
	counts := record.Counts()
	fmt.Println(kinds[transporttest.EventOp], "operations,", counts.Completions, "completions, one of them an error:", counts.Errors)
	fmt.Println(d.Close())
	// Output:
	// 2 operations, 2 completions, one of them an error: 1
	// <nil>
}

// A NIC's own measurement, beside what it stands on; the table goes to a document, and here nowhere.
func ExampleContest() {
	nothing := func(int) error { return nil }
	err := transporttest.Measure(io.Discard, 3, []transporttest.Contest{{Name: "8 B put", Each: 100, Ours: nothing, Raw: nothing}})
	fmt.Println(err)
	// Output: <nil>
}
