package tcp_test

import (
	"context"
	"fmt"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/tcp"
)

// A rank writes to itself through sockets on this machine.
func ExampleProvider() {
	ctx := context.Background()
	var p *tcp.Provider = tcp.New(tcp.Config{FailureTimeout: 2 * time.Second})
	nic, err := p.Open(ctx, transport.Config{Size: 1, Job: "example", Sched: sched.Goroutine(1)})
	if err != nil {
		fmt.Println(err)
		return
	}
	page := mem.Of(make([]uint64, 512))
	key, err := nic.Register(page, transport.AllAccess)
	if err != nil {
		fmt.Println(err)
		return
	}
	self, err := nic.Connect(ctx, 0, nic.Address())
	if err != nil {
		fmt.Println(err)
		return
	}
	copy(page.Data(), "hello")
	op := transport.Op{
		Kind: transport.OpWrite, Flags: transport.FlagSignaled, EP: self, RAddr: page.Addr() + 100, RKey: key.RKey, NSGE: 1,
		SGE: [4]transport.SGE{{Mem: page.Slice(0, 5), LKey: key.LKey}},
	}
	if _, err := nic.Post([]transport.Op{op}); err != nil {
		fmt.Println(err)
	}
	var cq [1]transport.Completion
	for n := 0; n == 0; {
		if n, err = nic.Poll(cq[:]); n == 0 && err == nil {
			err = nic.Wait(ctx)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(p.Name(), cq[0].Status == transport.StatusOK, string(page.Data()[100:105]))
	fmt.Println(nic.Deregister(key), nic.Close())
	// Output:
	// tcp true hello
	// <nil> <nil>
}
