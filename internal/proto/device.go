package proto

import (
	"sync/atomic"

	"gopgas/eager"
	"gopgas/internal/errand"
	"gopgas/internal/flight"
	"gopgas/internal/hose"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/regmgr"
	"gopgas/transport"
)

// device is a NIC with all the ways that transfers over it can take.
type device struct {
	*nic.NIC
	e *Engine

	direct  direct // transfers from and to the user's memory
	small   small  // those that are small
	bulk    bulk   // those that are large and not registered
	lending lending
	used    used // offered to others, or to be
	gauge   gauge
	forced  atomic.Uint32 // a selector.Protocol, or None

	flights *flight.Flights // in pipes, with leases or without
	hoses   *hose.Set       // nil: the NIC has no limit, or cannot do without whole registrations
	names   atomic.Uint64   // drawn by nameKey so far
	exposed errand.Memories // what handlers may touch

	holds [nic.Pieces]regmgr.Hold // by piece: what its operation uses; the poller's while it is in flight
}

// opened is a device that has no methods. What an atomic.Pointer points at has its methods compiled by every package that hears of the Engine,
// and a device has all those of a NIC.
type opened struct{ device device }

func newDevice(e *Engine, d transport.Domain) (*opened, error) {
	o := &opened{device: device{e: e}}
	n := &o.device
	var err error
	n.NIC, err = nic.New(nic.Config{
		Rank: e.Rank, Size: e.Size, Name: e.config.NICName, Domain: d, Sched: e.Sched, Peers: e.Peers, Slots: e.config.Slots,
		NoInline: e.config.Eager.Mode == eager.OnlyBounce, Client: client{n},
	})
	if err != nil {
		return nil, err
	}
	if err := n.prepareFlights(e.config.Bulk, e.config.Leases); err != nil {
		return nil, err
	}
	if err := n.Listen(n.flights.Immediates()); err != nil {
		return nil, err
	}
	if err := n.prepareMemory(e.config.Registration); err != nil {
		return nil, err
	}
	n.shareRoom()
	n.prepareSmall(e.config.Eager)
	n.recall()
	n.Start()
	return o, nil
}

func (n *device) close() error {
	n.Quit()
	err := n.closeDirect()
	if cerr := n.Domain.Close(); cerr != nil {
		err = cerr
	}
	n.flights.Close()
	n.direct.reg.Forget()
	return err
}

// Forget lets go of the memory that this rank has registered, without a word to its NIC: for a rank that never runs again in a process that goes on, as one
// that a simulation kills. After Close and Abandon there is none.
func (e *Engine) Forget() {
	if n := e.nic(); n != nil {
		n.direct.reg.Forget()
	}
}

// know lets handlers touch exposed memory that is registered as a whole.
func (n *device) know(key transport.Region, r mem.Range) {
	n.exposed.Know(key.RKey, r)
	n.flights.Exposed(key)
}

// forget is know's inverse. What handlers have begun goes on until flights are drained.
func (n *device) forget(rkey uint64) {
	n.exposed.Forget(rkey)
	n.flights.Withdrawn(rkey)
}

// Handle is a transfer in flight: see nic.Handle. The zero Handle is done.
type Handle = nic.Handle

// Watched returns a handle that is done, and calls f when Done or Wait first says so.
func Watched(f func()) Handle { return nic.Watched(f) }

// Ended is Handle.Done that makes no progress.
func Ended(h Handle) bool { return nic.Ended(h) }
