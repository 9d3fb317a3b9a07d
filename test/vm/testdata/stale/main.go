// Command stale shows why registered Go memory is pinned. It registers a part of a slice with an RDMA NIC, drops the slice, lets
// the runtime give its pages back, and allocates again until the new slice lies where the old one did; then it sends from
// there. "stale pinned" registers as programs do: what arrives is what was sent. "stale bare" leaves the Go object unpinned, and
// is nothing that a program can ask for: the registration outlives the object, and the NIC sends the dead one's bytes.
// Then the cache gives its memory up, and the kernel counts fewer pinned pages.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/regmgr"
	"gopgas/transport"
	"gopgas/transport/verbs"
)

const (
	objectBytes = 64 << 20
	partAt      = 32 << 20 // of the object
	partBytes   = 1 << 20
	attempts    = 100
	operations  = 5000 // more than a NIC has in flight
)

func main() {
	if err := run(len(os.Args) == 2 && os.Args[1] == "bare"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sender is a NIC with a cache of registrations, connected to another NIC that has memory registered.
type sender struct {
	d, there transport.Domain
	ep       transport.EP
	m        *regmgr.Manager
	target   mem.Range
	key      transport.Region
	other    mem.Range // of this end, registered for good
	otherKey transport.Region
}

func run(bare bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := connect(ctx, bare)
	if err != nil {
		return err
	}
	old, err := s.first()
	if err != nil {
		return err
	}
	// The NIC's own books name the memory of its last operations, which keeps that alive: give it others.
	for range operations {
		if err := s.write(ctx, s.other, s.otherKey.LKey); err != nil {
			return err
		}
	}
	runtime.GC()
	debug.FreeOSMemory()
	b, again := allocateAt(old)
	fmt.Printf("the new slice lies where the old one did: %v\n", again)
	part := b[partAt : partAt+partBytes]
	for i := range part {
		part[i] = 'B'
	}
	if err := s.send(ctx, part); err != nil {
		return err
	}
	got := s.target.Data()
	fmt.Printf("%d of %d bytes are as sent, %d are the dead slice's\n", bytes.Count(got, []byte("B")), partBytes, bytes.Count(got, []byte("A")))
	fmt.Printf("%d registrations, %d hits\n", s.m.Stats().Registrations, s.m.Stats().Hits)
	before, err := pinnedKiB()
	if err != nil {
		return err
	}
	freed := s.m.Trim(1 << 40)
	after, err := pinnedKiB()
	if err != nil {
		return err
	}
	fmt.Printf("given up %d KiB, pinned %d KiB fewer\n", freed>>10, before-after)
	runtime.KeepAlive(b)
	return errors.Join(s.m.Close(), s.d.Close(), s.there.Close())
}

// connect opens two NICs of this process and connects the first to the second.
func connect(ctx context.Context, bare bool) (*sender, error) {
	var d [2]transport.Domain
	for i := range d {
		var err error
		d[i], err = verbs.Provider{}.Open(ctx, transport.Config{
			Rank: i, Size: 2, Job: "stale", Secret: []byte("stale"), Sched: sched.Goroutine(2),
		})
		if err != nil {
			return nil, err
		}
	}
	s := &sender{d: d[0], there: d[1], target: mem.Of(make([]byte, partBytes))}
	var err error
	if s.ep, err = d[0].Connect(ctx, 1, d[1].Address()); err != nil {
		return nil, err
	}
	if s.key, err = d[1].Register(s.target, transport.AllAccess); err != nil {
		return nil, err
	}
	s.other = mem.Of(make([]byte, 8))
	if s.otherKey, err = d[0].Register(s.other, 0); err != nil {
		return nil, err
	}
	var nic regmgr.Registrar = d[0]
	if bare {
		nic = careless{d[0]}
	}
	// Quiet: registrations stay after collections, as those do that are in use now and then.
	s.m, err = regmgr.New(regmgr.Config{Registrar: nic, Sched: sched.Goroutine(2), Quiet: true, NoPin: bare})
	return s, err
}

// careless is a NIC that does not keep registered memory alive either.
type careless struct{ transport.Domain }

// Register is the NIC's.
func (c careless) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	key, err := c.Domain.Register(r, a)
	if err == nil {
		c.Domain.(interface{ LetGo(id uint64) }).LetGo(key.ID)
	}
	return key, err
}

// first sends from a slice that nobody knows afterwards, and returns where it lay.
//
//go:noinline
func (s *sender) first() (addr uint64, err error) {
	b := make([]byte, objectBytes)
	part := b[partAt : partAt+partBytes]
	for i := range part {
		part[i] = 'A'
	}
	if err := s.send(context.Background(), part); err != nil {
		return 0, err
	}
	if n := bytes.Count(s.target.Data(), []byte("A")); n != partBytes {
		return 0, fmt.Errorf("%d of %d bytes have arrived", n, partBytes)
	}
	return mem.Of(b).Addr(), nil
}

// allocateAt allocates slices until one lies at addr, and returns it, or the last one.
func allocateAt(addr uint64) (b []byte, ok bool) {
	for range attempts {
		b = make([]byte, objectBytes)
		if mem.Of(b).Addr() == addr {
			return b, true
		}
		runtime.GC() // what lies elsewhere goes again
		debug.FreeOSMemory()
	}
	return b, false
}

// send writes the bytes to the target through the cache, and returns when they are there.
func (s *sender) send(ctx context.Context, b []byte) error {
	var h regmgr.Hold
	if err := s.m.Acquire(&h, regmgr.Request{Mem: mem.Of(b)}); err != nil {
		return err
	}
	defer s.m.Release(&h)
	return s.write(ctx, mem.Of(b), h.LKey())
}

// write writes registered memory to the target, and returns when it is there.
func (s *sender) write(ctx context.Context, r mem.Range, lkey uint64) error {
	op := transport.Op{
		Kind: transport.OpWrite, Flags: transport.FlagSignaled, NSGE: 1, EP: s.ep, RAddr: s.target.Addr(), RKey: s.key.RKey, Cookie: 1,
	}
	op.SGE[0] = transport.SGE{Mem: r, LKey: lkey}
	if n, err := s.d.Post([]transport.Op{op}); err != nil || n != 1 {
		return fmt.Errorf("post: %d taken: %w", n, err)
	}
	var cq [8]transport.Completion
	for ctx.Err() == nil {
		n, err := s.d.Poll(cq[:])
		if err != nil {
			return err
		}
		if _, err := s.there.Poll(nil); err != nil {
			return err
		}
		for _, c := range cq[:n] {
			if c.Cookie == 1 && c.Kind == transport.OpWrite {
				if c.Status != transport.StatusOK {
					return fmt.Errorf("the write ended with status %d", c.Status)
				}
				return nil
			}
		}
		runtime.Gosched()
	}
	return ctx.Err()
}

// pinnedKiB is what the kernel counts as pinned for devices in this process.
func pinnedKiB() (int, error) {
	text, err := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		var n int
		if k, _ := fmt.Sscanf(line, "VmPin: %d kB", &n); k == 1 {
			return n, nil
		}
	}
	return 0, errors.Join(err, errors.New("/proc/self/status says nothing of VmPin"))
}
