package pgas

import (
	"context"
	"fmt"
	"runtime"

	"gopgas/eager"
	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
	"gopgas/internal/symheap"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/transport/auto"
)

// Fact is one line of what the library tells of itself.
type Fact struct{ Section, Name, Value, Note string }

// Describe tells what the library uses and offers on this machine with the settings of environ: transports, and why one
// cannot be used, and what a rank, a peer and a window cost in memory. It opens each NIC for a moment.
func Describe(ctx context.Context, environ []string, ranks int) []Fact {
	if ctx == nil { // it never ends; NICs take none that is nil
		ctx = context.Background()
	}
	remote := mem.SizeOf[proto.Remote]()
	slice := mem.SizeOf[[]byte]()
	perRank, perPeer, long := pgsync.Footprint(ranks)
	facts := []Fact{{"transports", "shm", "available", "ranks of one node map each other's memory; loads, stores and CPU atomics"}}
	cfg, err := FromEnvironment(environ)
	if err != nil {
		facts = append(facts, Fact{"transports", "settings", "unusable", err.Error()})
	}
	for _, line := range append(misspelled(environ), cfg.tooLittle()) {
		if line != "" {
			facts = append(facts, Fact{"transports", "settings", "doubtful", line})
		}
	}
	for _, n := range auto.NICs() {
		facts = append(facts, describeNIC(ctx, n, &cfg))
	}
	facts = append(facts, devices()...)
	var memory []Fact
	for _, n := range auto.NICs() {
		protocols, takes := protocolsOf(ctx, n.Name, &cfg, ranks)
		facts, memory = append(facts, protocols...), append(memory, takes...)
	}
	facts = append(facts, []Fact{
		{"memory", "per rank, at the start", mem.Text(perRank), fmt.Sprintf("control blocks in a world of %d ranks, in shared memory", ranks)},
		{"memory", "per team, in long calls", mem.Text(long), "outboxes of long collectives, from the first one on, where all members map each other's memory"},
		{"memory", "symmetric heap", "on demand", fmt.Sprintf("chunks from %s on, doubling up to what is asked for; nothing to set", mem.Text(symheap.FirstChunk))},
		{"memory", "per peer", mem.Text(perPeer), "flags and tables; one mapping for each chunk of the heap"},
		{"memory", "per window", mem.Text(ranks * (remote + slice)), fmt.Sprintf("%d bytes for each member, beside the elements", remote+slice)},
	}...)
	facts = append(facts, memory...)
	facts = append(facts, []Fact{
		{"memory", "small transfers, once there are many", mem.Text(eager.TableBytes), "over a NIC: which buffers are used how often; populated during the run"},
		{"runtime", "Go", runtime.Version(), fmt.Sprintf("%s/%s", runtime.GOOS, runtime.GOARCH)},
	}...)
	return facts
}

// devices describes the RDMA ports of this machine, with the reason where one cannot be used.
func devices() []Fact {
	const section = "RDMA devices (for PGAS_DEVICE)"
	list, err := auto.Devices()
	if err != nil {
		return []Fact{{section, "none", "", err.Error()}}
	}
	var facts []Fact
	for _, d := range list {
		value, note := "usable", d.Address
		if d.Problem != "" {
			value, note = "unusable", d.Problem
		}
		if d.Link != "" {
			atomics := "64-bit atomics"
			if !d.Atomics {
				atomics = "no atomics"
			}
			note += fmt.Sprintf("; %s, MTU %d, messages up to %s, %d registrations, %d queue pairs, completion queues of %d, %s",
				d.Link, d.MTU, mem.Text(d.MaxMessage), d.MaxRegions, d.MaxPairs, d.MaxCQE, atomics)
		}
		facts = append(facts, Fact{section, d.Name, value, note})
	}
	return facts
}

// protocolsOf tells what is chosen for transfers over a NIC, by costs measured now; nothing where it cannot be used, which the
// list of transports has explained.
func protocolsOf(ctx context.Context, name string, cfg *Config, ranks int) (facts, memory []Fact) {
	p, err := auto.Provider(name, cfg.nics(1))
	if err != nil {
		return nil, nil
	}
	kept, err := cfg.kept()
	if err != nil {
		return nil, nil // as the configuration is checked elsewhere
	}
	s := sched.Process(1)
	e := proto.New(proto.Config{
		Size: 1, Sched: s, Peers: peers.New(1), Nodes: []int{0}, NICName: name, Kept: kept,
		OpenNIC: func(ctx context.Context) (transport.Domain, error) {
			return p.Open(ctx, transport.Config{Size: 1, Job: "info", Secret: []byte("info"), Device: cfg.Device, Sched: s})
		},
	})
	section := "protocols over " + name + ", by costs measured between this process and itself"
	rows, unmeasured, err := e.Protocols(ctx)
	if err != nil {
		return nil, nil
	}
	if when, err := e.Kept(); err != nil {
		facts = append(facts, Fact{section, "not kept", "", err.Error()})
	} else if !when.IsZero() {
		section = "protocols over " + name + ", by costs that were measured on " + when.Format("2006-01-02 15:04 MST")
	}
	memory = memoryOver(name, e.Memory(ranks), ranks)
	if unmeasured != nil {
		section = "protocols over " + name + ", by published costs"
		facts = append(facts, Fact{section, "not measured", "", unmeasured.Error()})
	}
	for _, r := range rows {
		facts = append(facts, Fact{section, r.Case, "", r.Sizes})
	}
	if reg, err := cfg.registration(); err == nil {
		policy, why := e.Preferred(reg)
		facts = append(facts, Fact{section, "registered memory, rank alone on its node", policy.String(), why})
	}
	if err := e.Close(); err != nil {
		facts = append(facts, Fact{section, "close", "", err.Error()})
	}
	return facts, memory
}

// memoryOver tells what a NIC takes of a rank in a world of so many.
func memoryOver(name string, m proto.Memory, ranks int) []Fact {
	facts := []Fact{
		{
			"memory", "per rank, over " + name, mem.Text(m.Slots + m.Scratch + m.Messages + m.Pipes + m.Rings),
			fmt.Sprintf("registered while the NIC is open: slots %s, pipes %s, messages %s for %d ranks, scratch %s; queues %s", mem.Text(m.Slots),
				mem.Text(m.Pipes), mem.Text(m.Messages), ranks, mem.Text(m.Scratch), mem.Text(m.Rings)),
		},
		{"memory", "leases, over " + name, mem.Text(m.Leases), "registered when others first put to memory that is not"},
		{
			"memory", "measuring, over " + name, mem.Text(m.Measuring + m.Beside),
			fmt.Sprintf("for a second, or some, when there have been some transfers; %s of it registered", mem.Text(m.Measuring)),
		},
	}
	if n := auto.PeerBytes(name, ranks); n > 0 {
		facts = append(facts, Fact{"memory", "per peer, over " + name, mem.Text(n), "of the peer's memory, mapped when the two first connect"})
	}
	return facts
}

// describeNIC tries a NIC, and one that reaches other machines in both ways.
func describeNIC(ctx context.Context, n auto.Info, cfg *Config) Fact {
	f := Fact{"transports", n.Name, "available", n.What}
	if err := auto.Probe(ctx, n.Name, cfg.Device, cfg.nics(1)); err != nil {
		f.Value, f.Note = "unusable", err.Error()
	} else if n.Nodes {
		if err := auto.Probe(ctx, n.Name, cfg.Device, cfg.nics(2)); err != nil {
			f.Value, f.Note = "one node only", err.Error()
		}
	}
	return f
}
