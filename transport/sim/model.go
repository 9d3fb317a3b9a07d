package sim

import (
	"fmt"
	"time"

	"gopgas/transport"
)

// Picos is a time per byte, in picoseconds: 500 are 2 GB/s.
type Picos int64

// of returns the time for bytes.
func (p Picos) of(bytes int) time.Duration { return time.Duration(int64(p) * int64(bytes) / 1000) }

// Cost is what one kind of operation costs beside its bytes.
type Cost struct {
	Post   time.Duration // o: the processor is busy posting one
	Gap    time.Duration // g: the NIC that sends one cannot send the next until so long after its last byte
	Target time.Duration // the target's NIC works on one; for atomics, one after the other
}

// Linear is a cost by pages.
type Linear struct{ Fixed, PerPage time.Duration }

// of returns the cost of bytes, in pages of 4 KiB.
func (l Linear) of(bytes int) time.Duration {
	return l.Fixed + l.PerPage*time.Duration((bytes+pageBytes-1)/pageBytes)
}

const pageBytes = 4096

// Level is the speed of copies of up to so many bytes; the last level of a list serves all longer ones too.
type Level struct {
	UpTo    int
	PerByte Picos
}

// Model is what a machine costs: LogGP for its network, and straight lines for its memory. The zero Model costs
// nothing.
type Model struct {
	Name   string
	Source string // where the constants come from, and which of them are assumed

	Latency      time.Duration // L: from the last byte sent to the last byte there, and for every answer back
	LocalLatency time.Duration // the same between ranks of one node that go through its NIC; 0: Latency
	PerByte      Picos         // G: of one port, each way
	Write        Cost
	Read         Cost
	Atomic       Cost
	Send         Cost          // with and without a message: OpSend and OpWriteImm
	Reap         time.Duration // the processor takes one completion
	Poll         time.Duration // the processor looks for completions in vain
	Connect      time.Duration // the first use of a peer
	Fragment     int           // a longer write lands in pieces of so many bytes, one after the other; 0: all at once
	Detect       time.Duration // from the death of a rank until its peers hear of it

	Register, Deregister Linear
	Copy                 []Level
}

// CopyCost returns what the copy of bytes costs as a part of a copy of whole bytes.
func (m *Model) CopyCost(bytes, whole int) time.Duration {
	for i := range m.Copy {
		if l := &m.Copy[i]; whole <= l.UpTo || i == len(m.Copy)-1 {
			return l.PerByte.of(bytes)
		}
	}
	return 0
}

// cost returns the costs of a kind of operation.
func (m *Model) cost(k transport.Kind) *Cost {
	switch k {
	case transport.OpRead:
		return &m.Read
	case transport.OpFetchAdd, transport.OpCompareSwap:
		return &m.Atomic
	case transport.OpSend, transport.OpWriteImm:
		return &m.Send
	default:
		return &m.Write
	}
}

// latency returns L between two nodes.
func (m *Model) latency(same bool) time.Duration {
	if same && m.LocalLatency != 0 {
		return m.LocalLatency
	}
	return m.Latency
}

// Graphene is the cluster of the superpipeline paper.
func Graphene() Model {
	return Model{
		Name: "graphene",
		Source: "Denis, A High-Performance Superpipeline Protocol for InfiniBand, Euro-Par 2011: ConnectX DDR, Xeon X3440. " +
			"Published: registration 68 us + 200 ns a page. Derived from its figures: network 2 GB/s (91 % of the wire with " +
			"20 GB/s of registration), copies beyond the caches 5.2 GB/s (57 % of the wire), latency 1.2 us (first chunks of 8 to " +
			"16 KB are two latencies of copying). Assumed: o 100 ns, g 200 ns (the paper: g - o of order 100 ns), 50 ns for a " +
			"completion, target's work on reads and atomics 300 ns, copies within the caches 20, 15 and 10 GB/s, no cost of " +
			"deregistration (the paper's model has no term for it), detection of a death after 500 ms",
		Latency: 1200, PerByte: 500,
		Write: Cost{Post: 100, Gap: 200}, Read: Cost{Post: 100, Gap: 200, Target: 300},
		Atomic: Cost{Post: 100, Gap: 200, Target: 300}, Send: Cost{Post: 100, Gap: 200, Target: 100},
		Reap: 50, Poll: 30, Fragment: 4096, Detect: 500 * time.Millisecond,
		Register: Linear{68 * time.Microsecond, 200},
		Copy:     []Level{{32 << 10, 50}, {256 << 10, 67}, {8 << 20, 100}, {1 << 62, 192}},
	}
}

// Helper is the cluster of the paper on registration by helper threads.
func Helper() Model {
	m := Graphene()
	m.Name = "helper"
	m.Source = "Li, Cameron, Nikolopoulos, de Supinski, Schulz, CF 2011: ConnectX, two quad-core Xeons of 2.8 GHz with 6 MB of L2. " +
		"Derived: 5 MB without leaving memory pinned take 25.83 % longer, which with the network assumed at 1.4 GB/s are 0.92 ms for " +
		"1221 pages; split as 68 us (taken from graphene) and 500 ns a page to register and 200 ns a page to deregister. Assumed: " +
		"these splits, and everything that is not registration, as in graphene"
	m.PerByte = 714
	m.Register, m.Deregister = Linear{68 * time.Microsecond, 500}, Linear{0, 200}
	m.Copy = []Level{{32 << 10, 60}, {6 << 20, 125}, {1 << 62, 250}}
	return m
}

// Modern is a network of 100 Gbit/s.
func Modern() Model {
	return Model{
		Name:    "modern",
		Source:  "all constants assumed, of the order that vendors of 100 Gbit/s RDMA networks state",
		Latency: 900, LocalLatency: 400, PerByte: 80,
		Write: Cost{Post: 60, Gap: 15}, Read: Cost{Post: 60, Gap: 15, Target: 100},
		Atomic: Cost{Post: 60, Gap: 30, Target: 60}, Send: Cost{Post: 60, Gap: 20, Target: 40},
		Reap: 30, Poll: 20, Fragment: 4096, Detect: 500 * time.Millisecond,
		Register: Linear{40 * time.Microsecond, 100}, Deregister: Linear{20 * time.Microsecond, 50},
		Copy: []Level{{48 << 10, 20}, {2 << 20, 35}, {32 << 20, 60}, {1 << 62, 100}},
	}
}

// Named returns the model of a name.
func Named(name string) (Model, error) {
	for _, m := range []Model{Graphene(), Helper(), Modern()} {
		if m.Name == name {
			return m, nil
		}
	}
	return Model{}, fmt.Errorf("no model %q; there are graphene, helper and modern", name)
}
