package regmgr_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/regmgr"
	"gopgas/transport"
)

// counting stands for a NIC.
type counting struct{ registered, ended atomic.Uint64 }

func (n *counting) Register(mem.Range, transport.Access) (transport.Region, error) {
	id := n.registered.Add(1)
	return transport.Region{ID: id, LKey: 100 + id}, nil
}

func (n *counting) Deregister(transport.Region) error {
	n.ended.Add(1)
	return nil
}

// Memory that is used twice is registered once.
func ExampleManager() {
	nic := &counting{}
	var registrar regmgr.Registrar = nic
	var m *regmgr.Manager
	m, err := regmgr.New(regmgr.Config{
		Policy: regmgr.LeavePinned, Registrar: registrar, Sched: sched.Goroutine(1), Bytes: 4 << 20, Quiet: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	buffer := make([]byte, 1<<20) // so large that it cannot be on a stack
	for range 2 {
		var hold regmgr.Hold
		if err := m.Acquire(&hold, regmgr.Request{Mem: mem.Of(buffer)}); err != nil {
			fmt.Println(err)
			return
		}
		region := hold.Region()
		fmt.Println("key", hold.LKey(), region.Contains(mem.Of(buffer[100:200])))
		m.Release(&hold) // the NIC is done with it
	}
	s := m.Stats()
	fmt.Println(s.Registrations, "registration,", s.Hits, "hit,", s.Idle == s.Bytes, "that all is idle")
	p := s.Prediction
	fmt.Println(p.Made, "predictions; closed:", m.Close(), nic.ended.Load() == nic.registered.Load())
	m.Forget()
	// Output:
	// key 101 true
	// key 101 true
	// 1 registration, 1 hit, true that all is idle
	// 0 predictions; closed: <nil> true
}

// How policies register a transfer of 4 MiB.
func ExamplePolicy() {
	for _, name := range []string{"bounce", "ondemand", "pipelined"} {
		var p regmgr.Policy
		p, err := regmgr.ParsePolicy(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		plan := p.PlanFor(4<<20, 64<<10)
		fmt.Println(p, plan.Register, plan.Register && plan.Fragment < 4<<20)
	}
	// Output:
	// bounce false false
	// ondemand true false
	// pipelined true true
}

// One figure for all the memory that a rank has registered.
func ExampleBudget() {
	m, err := regmgr.New(regmgr.Config{Registrar: &counting{}, Sched: sched.Goroutine(1), Bytes: 1 << 20, Quiet: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	b := m.Budget()
	fmt.Println(m.Reserve(900<<10, 1), m.Reserve(900<<10, 1))
	u := b.Usage()
	fmt.Println(u.Bytes, u.Regions)
	var hold regmgr.Hold
	err = m.Acquire(&hold, regmgr.Request{Mem: mem.Of(make([]byte, 512<<10))})
	fmt.Println(errors.Is(err, regmgr.ErrCopy))
	m.Unreserve(900<<10, 1)
	fmt.Println(m.Close())
	m.Forget()
	// Output:
	// true false
	// 921600 1
	// true
	// <nil>
}

// Memory that is not Go's is kept registered by its owner's word only; Go memory needs none.
func ExampleLifetime() {
	m, err := regmgr.New(regmgr.Config{Registrar: &counting{}, Sched: sched.Goroutine(1), Quiet: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	var l *regmgr.Lifetime
	l, err = m.Keep(make([]byte, 4096))
	fmt.Println(l == nil, errors.Is(err, regmgr.ErrLifetime))
	l.End() // of none: does nothing
	fmt.Println(m.Close())
	m.Forget()
	// Output:
	// true true
	// <nil>
}

// The policy that foresees uses needs to know what a registration costs, and how to predict.
func ExampleAhead() {
	costs, err := cost.Named("helper-threads")
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := regmgr.New(regmgr.Config{
		Policy: regmgr.Predictive, Registrar: &counting{}, Sched: sched.Goroutine(1), Quiet: true, Costs: costs,
		Ahead: &regmgr.Ahead{Window: 2, Poll: 100 * time.Microsecond},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Policy(), m.Close())
	m.Forget()
	// Output: predictive <nil>
}

// lent is memory that was registered for others, who have let go of it.
type lent struct {
	m    *regmgr.Manager
	mem  mem.Range
	key  transport.Region
	uses uint64
}

func (l *lent) Oldest() (uint64, bool) { return l.uses, l.mem.Bytes > 0 }

func (l *lent) Shed(int64) int64 {
	freed := int64(l.mem.Bytes)
	if l.m.Return(l.key, l.mem) != nil {
		return 0
	}
	l.mem = mem.Range{}
	return freed
}

// What others do not use any more goes when a transfer needs the room.
func ExampleVictims() {
	m, err := regmgr.New(regmgr.Config{
		Policy: regmgr.LeavePinned, Registrar: &counting{}, Sched: sched.Goroutine(1), Bytes: 1 << 20, Quiet: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	theirs := &lent{m: m, mem: mem.Of(make([]byte, 768<<10)), uses: m.Uses()}
	var victims regmgr.Victims = theirs
	m.Share(victims)
	if theirs.key, err = m.Lend(theirs.mem, transport.AllAccess); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Stats().Lent, "bytes are lent")
	var hold regmgr.Hold
	if err := m.Acquire(&hold, regmgr.Request{Mem: mem.Of(make([]byte, 512<<10))}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Stats().Lent, "bytes are lent; given up:", m.Stats().Shed)
	m.Release(&hold)
	fmt.Println(m.Close())
	m.Forget()
	// Output:
	// 786432 bytes are lent
	// 0 bytes are lent; given up: 1
	// <nil>
}

// held is a bucket of another rank that this one may use at once while it holds it.
type held struct {
	has   atomic.Bool
	asked chan uint64
}

func (h *held) Has(uint64) bool { return h.has.Load() }

func (h *held) Ask(bucket uint64, _ int64) error {
	h.has.Store(true)
	select {
	case h.asked <- bucket:
	default: // the example has seen one
	}
	return nil
}

func (h *held) Yield(uint64) bool {
	h.has.Store(false)
	return true
}

func (h *held) Expect(uint64, int64) {}

// A bucket that is used again and again is asked for before its next use.
func ExampleRemote() {
	costs, err := cost.Named("helper-threads")
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := regmgr.New(regmgr.Config{
		Policy: regmgr.Predictive, Registrar: &counting{}, Sched: sched.Goroutine(1), Quiet: true, Costs: costs,
		Ahead: &regmgr.Ahead{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	buckets := &held{asked: make(chan uint64, 1)}
	var remote regmgr.Remote = buckets
	fmt.Println("a helper looks after it:", m.Foresee(remote))
	asked := false
	for deadline := time.Now().Add(time.Minute); !asked && time.Now().Before(deadline); {
		var use regmgr.RemoteUse
		m.RemoteMark(&use, 0)
		m.RemoteCalled(&use, 7, false)
		m.RemoteDone(&use, 50_000) // what it takes to get the bucket back
		select {
		case b := <-buckets.asked:
			fmt.Println("asked for bucket", b)
			asked = true
		case <-time.After(20 * time.Millisecond): // the program computes
		}
	}
	fmt.Println(m.Close())
	m.Forget()
	// Output:
	// a helper looks after it: true
	// asked for bucket 7
	// <nil>
}

// Whether memory is better registered ahead of its uses depends on cores, limit and costs.
func ExampleFacts() {
	costs, err := cost.Named("helper-threads")
	if err != nil {
		fmt.Println(err)
		return
	}
	facts := regmgr.Facts{Idle: 1, Bytes: 64 << 20, Memory: 8 << 30, Costs: costs}
	policy, why, _ := facts.Prefer()
	fmt.Println(policy, "since", why)
	facts.Idle = 0
	policy, why, _ = facts.Prefer()
	fmt.Println(policy, "since", why)
	// Output:
	// predictive since only 64.0 MiB may be registered of 8.0 GiB of memory, to find 1.0 MiB unregistered costs 200µs of 752.983µs, and a core is idle
	// leavepinned since no core is idle for a helper
}
