package transport_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/shm"
	"gopgas/transport/transporttest"
)

// end is one rank with its NIC and a page of registered memory.
type end struct {
	nic  transport.Domain
	page mem.Range
	key  transport.Region
	peer transport.EP
}

// pair opens two domains of a provider that works inside one process, and connects the first one to the second.
func pair(ctx context.Context, of func(rank int) transport.Provider) (two [2]end, err error) {
	for i := range two {
		c := transport.Config{Rank: i, Size: 2, Job: "example", Sched: sched.Goroutine(2)}
		e := end{page: mem.Of(make([]uint64, 512))}
		if e.nic, err = of(i).Open(ctx, c); err != nil {
			return two, err
		}
		rights := transport.AllAccess
		if e.key, err = e.nic.Register(e.page, rights); err != nil {
			return two, err
		}
		two[i] = e
	}
	two[0].peer, err = two[0].nic.Connect(ctx, 1, two[1].nic.Address())
	return two, err
}

// await polls until something has completed.
func await(ctx context.Context, d transport.Domain) (transport.Completion, error) {
	var cq [1]transport.Completion
	for {
		if n, err := d.Poll(cq[:]); n > 0 || err != nil {
			return cq[0], err
		}
		if err := d.Wait(ctx); err != nil {
			return cq[0], err
		}
	}
}

// Rank 0 writes into the memory of rank 1, adds to it, and is refused outside.
func ExampleDomain() {
	ctx := context.Background()
	two, err := pair(ctx, transporttest.NewFabric(2, transporttest.FabricConfig{}).Provider)
	if err != nil {
		fmt.Println(err)
		return
	}
	a, b := two[0], two[1]
	caps := a.nic.Caps()
	fmt.Println("atomics:", caps.Atomics64)
	a.page.Word64(0).Store(40)
	ops := []transport.Op{
		{
			Kind: transport.OpWrite, EP: a.peer, RAddr: b.page.Addr() + 8, RKey: b.key.RKey, NSGE: 1,
			SGE: [4]transport.SGE{{Mem: a.page.Slice(0, 8), LKey: a.key.LKey}},
		},
		{
			Kind: transport.OpFetchAdd, Flags: transport.FlagSignaled, Cookie: 7, EP: a.peer, RAddr: b.page.Addr() + 8,
			RKey: b.key.RKey, Arg0: 2, NSGE: 1, SGE: [4]transport.SGE{{Mem: a.page.Slice(16, 8), LKey: a.key.LKey}},
		},
	}
	if n, err := a.nic.Post(ops); n < len(ops) || err != nil { // a short count is back-pressure
		fmt.Println(n, err)
		return
	}
	done, err := await(ctx, a.nic)
	status := done.Status
	fmt.Println(done.Cookie, status == transport.StatusOK, err, a.page.Word64(16).Load(), b.page.Word64(8).Load())

	kind := transport.OpRead
	outside := transport.Op{Kind: kind, EP: a.peer, RAddr: b.page.Addr() + 4096, RKey: b.key.RKey, NSGE: 1}
	outside.SGE[0] = transport.SGE{Mem: a.page.Slice(0, 8), LKey: a.key.LKey}
	_, _ = a.nic.Post([]transport.Op{outside})
	done, _ = await(ctx, a.nic)
	fmt.Println(done.Status == transport.StatusRemoteAccess)
	if x, ok := a.nic.(interface {
		Explain(c transport.Completion) error
	}); ok { // domains may know more
		fmt.Println(x.Explain(done))
	}
	fmt.Println(a.nic.Close(), b.nic.Close())
	// Output:
	// atomics: true
	// 7 true <nil> 40 42
	// true
	// <nil> <nil>
}

// A message into the receiver's next buffer.
func ExampleRecv() {
	ctx := context.Background()
	two, err := pair(ctx, transporttest.NewFabric(2, transporttest.FabricConfig{}).Provider)
	if err != nil {
		fmt.Println(err)
		return
	}
	a, b := two[0], two[1]
	buffer := transport.Recv{Buf: transport.SGE{Mem: b.page.Slice(0, 64), LKey: b.key.LKey}, Cookie: 3}
	if _, err := b.nic.PostRecv([]transport.Recv{buffer}); err != nil {
		fmt.Println(err)
	}
	copy(a.page.Data(), "hello")
	message := transport.Op{Kind: transport.OpSend, EP: a.peer, Imm: 9, NSGE: 1}
	message.SGE[0] = transport.SGE{Mem: a.page.Slice(0, 5), LKey: a.key.LKey}
	if _, err := a.nic.Post([]transport.Op{message}); err != nil {
		fmt.Println(err)
	}
	come, err := await(ctx, b.nic)
	fmt.Println(come.Kind == transport.OpRecv, come.Cookie, come.Imm, string(b.page.Data()[:come.Bytes]), err)
	fmt.Println(a.nic.Close(), b.nic.Close())
	// Output:
	// true 3 9 hello <nil>
	// <nil> <nil>
}

// Memory of one rank, mapped by another.
func ExampleMapper() {
	group := shm.NewGroup(2, shm.Config{})
	var owner, other transport.Mapper = group[0], group[1]
	mine, token, err := owner.Alloc(4096)
	if err != nil {
		fmt.Println(err)
		return
	}
	onTheWire := token // plain bytes: they travel to the other rank
	theirs, err := other.Map(onTheWire)
	if err != nil {
		fmt.Println(err)
		return
	}
	mine.Word64(8).Store(42)
	fmt.Println(owner.Name(), theirs.Word64(8).Load())
	fmt.Println(other.Close(), owner.Close())
	// Output:
	// shm 42
	// <nil> <nil>
}

// The errors that name a rank, and those that name a limit of the machine and its cure.
func ExampleLimitError() {
	limit := &transport.LimitError{
		What: "64.0 MiB of registered memory", Found: "8.0 MiB of locked memory left", Needed: "64.0 MiB", Setting: "ulimit -l 65536",
	}
	err := transport.NewOpError("allocate", 3, fmt.Errorf("grow the heap: %w", limit))
	fmt.Println(errors.Is(err, transport.ErrLimit))
	var op *transport.OpError
	fmt.Println(errors.As(err, &op), op.Op, op.Rank)
	fmt.Println(err)
	// Output:
	// true
	// true allocate 3
	// allocate (rank 3): grow the heap: 64.0 MiB of registered memory: found 8.0 MiB of locked memory left, needed 64.0 MiB; to change it: ulimit -l 65536
}

// told is a simulated NIC that knows what a write takes.
type told struct{ transport.Domain }

func (told) Costs() transport.Costs {
	return transport.Costs{Post: 100 * time.Nanosecond, Write: 2 * time.Microsecond, PerByte: 1e-9}
}

// What a write of 4 KiB takes by what the NIC says, where it says something.
func ExamplePriced() {
	var nic transport.Domain = told{}
	if p, ok := nic.(transport.Priced); ok {
		var c transport.Costs = p.Costs()
		fmt.Println(c.Post + c.Write + time.Duration(4096*c.PerByte*float64(time.Second)))
	}
	// Output: 6.196µs
}
