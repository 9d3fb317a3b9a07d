package sim_test

import (
	"context"
	"fmt"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/sim"
)

// One write of 1000 bytes by a machine whose costs are round numbers: 100 ns to post it, 1000 ns for its bytes, 500 ns of way
// there and as many for the answer.
func ExampleFabric() {
	model := sim.Model{
		Name: "round", Latency: 500 * time.Nanosecond, PerByte: sim.Picos(1000),
		Write:    sim.Cost{Post: 100 * time.Nanosecond},
		Register: sim.Linear{Fixed: time.Microsecond, PerPage: 100 * time.Nanosecond},
		Copy:     []sim.Level{{UpTo: 1 << 20, PerByte: 100}},
	}
	fmt.Println("a copy of 1000 bytes:", model.CopyCost(1000, 1000))
	// What goes wrong, if anything should: rank 1 would end after a second.
	faults := sim.Faults{Kill: []sim.Fault{{Rank: 1, At: time.Second}}}
	clock := sched.NewSim(1)
	machine := sim.New(clock, 2, sim.Config{Model: model, Faults: faults})
	var nics [2]transport.Domain
	var pages [2]mem.Range
	var keys [2]transport.Region
	var ranks [2]*sched.Sched
	for r := range nics {
		ranks[r] = clock.Rank()
		var err error
		nics[r], err = machine.Provider(r).Open(context.Background(), transport.Config{Rank: r, Size: 2, Sched: ranks[r]})
		if err != nil {
			fmt.Println(err)
			return
		}
		pages[r] = mem.Of(make([]uint64, 512))
		if keys[r], err = nics[r].Register(pages[r], transport.AllAccess); err != nil { // before time begins: for nothing
			fmt.Println(err)
			return
		}
	}
	ranks[0].Go(func() {
		ctx := context.Background()
		peer, err := nics[0].Connect(ctx, 1, nics[1].Address())
		if err != nil {
			fmt.Println(err)
			return
		}
		start := clock.Now()
		op := transport.Op{Kind: transport.OpWrite, Flags: transport.FlagSignaled, EP: peer, RAddr: pages[1].Addr(), RKey: keys[1].RKey, NSGE: 1}
		op.SGE[0] = transport.SGE{Mem: pages[0].Slice(0, 1000), LKey: keys[0].LKey}
		if _, err := nics[0].Post([]transport.Op{op}); err != nil {
			fmt.Println(err)
		}
		var cq [1]transport.Completion
		for n := 0; n == 0; {
			if n, err = nics[0].Poll(cq[:]); n == 0 && err == nil {
				err = nics[0].Wait(ctx)
			}
			if err != nil {
				fmt.Println(err)
				return
			}
		}
		fmt.Println("the write:", clock.Now()-start)
	})
	if err := clock.Run(); err != nil {
		fmt.Println(err)
	}
	counts := machine.Counts()
	fmt.Println(counts.Writes, "write of", counts.Bytes, "bytes")
	// Output:
	// a copy of 1000 bytes: 100ns
	// the write: 2.1µs
	// 1 write of 1000 bytes
}
