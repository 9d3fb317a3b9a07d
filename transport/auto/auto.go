// Package auto knows the transports of this build by the names that PGAS_TRANSPORT takes, and chooses one where none
// was named. Nothing above it names a provider's package.
//
// # Terms
//
//   - NIC: a transport that implements transport.Provider. shm is none: it maps memory, and goes by the name "shm".
//   - Reach: how far apart the ranks may be that a NIC connects: on one machine, or anywhere.
//
// # Life of a choice
//
// A world knows on how many nodes its ranks are before it opens a NIC. With a name from the user it asks Fits, then
// Provider; without one it takes the name from Choose, which is told what RDMA port each rank has found (Fabric) where
// the ranks are on several nodes. Probe opens a NIC for a lone rank and closes it: whether that
// works is the only honest answer to whether this machine has what the NIC needs.
//
// # Invariants
//
//   - U1: a name that does not exist, or that does not reach all ranks, is an error that says what would do; nothing else
//     is taken in its place.
//   - U2: the choice depends only on what is equal on all ranks, so that all choose the same.
//
// # Concurrency
//
// All functions may be called concurrently. None but Probe, Fabric and Devices touches the machine.
package auto

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/soft"
	"gopgas/transport/tcp"
	"gopgas/transport/verbs"
)

// Config holds the settings of single transports. The zero value is good for a job on one machine.
type Config struct {
	SoftLatency    time.Duration // PGAS_SOFT_LATENCY
	SoftBandwidth  int64         // PGAS_SOFT_BANDWIDTH, bytes per second
	FailureTimeout time.Duration // PGAS_FAILURE_TIMEOUT; 0: each NIC's own, 5 s
	AcrossNodes    bool          // the ranks are on several machines
	MaxPinned      int64         // bytes that a NIC may lock: of a software NIC for this process, of verbs for this rank; 0: RLIMIT_MEMLOCK

	// SoftMapper makes the memory of the soft NIC's queues; nil: as between processes. See soft.Config.
	SoftMapper func(transport.Config) (transport.Mapper, error)
}

// Info describes a NIC.
type Info struct {
	Name, What string
	Nodes      bool // it reaches ranks on other machines
}

// NICs lists the transports that are NICs, best first.
func NICs() []Info {
	return []Info{
		{"soft", "a software NIC inside one machine: queues in shared memory, an engine thread for each rank", false},
		{"verbs", "RDMA hardware: InfiniBand, RoCE, Soft-RoCE, by libibverbs", true},
		{"tcp", "a software NIC for any network: the target's process performs the operation while its program computes", true},
	}
}

// Names returns the names of the NICs, separated by commas.
func Names() string {
	var names []string
	for _, n := range NICs() {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}

// Choose names the best NIC for ranks on that many nodes, of which fabrics tells what Fabric has found for each rank:
// verbs between nodes where all ranks have a port on one kind of network, else tcp; soft on one node.
func Choose(nodes int, fabrics []string) string {
	switch {
	case nodes <= 1:
		return "soft"
	case len(fabrics) > 0 && fabrics[0] != "" && len(slices.Compact(slices.Clone(fabrics))) == 1:
		return "verbs"
	default:
		return "tcp"
	}
}

// Fabric returns the kind of network on which this machine has a usable RDMA port for device ("": any), "InfiniBand"
// or "Ethernet", or why there is none.
func Fabric(device string) (string, error) {
	d, err := verbs.Find(device)
	return d.Link, err
}

// Devices describes the RDMA ports of this machine, or says why there are none.
func Devices() ([]verbs.Device, error) { return verbs.Devices() }

// Known returns an error that names what there is, if name is neither a NIC nor "shm".
func Known(name string) error {
	for _, n := range NICs() {
		if n.Name == name {
			return nil
		}
	}
	if name == "shm" {
		return nil
	}
	return fmt.Errorf("%w: no transport of this build is called %q; there are: shm, %s", transport.ErrUnsupported, name, Names())
}

// Fits returns an error if the transport called name does not connect ranks on that many nodes.
func Fits(name string, nodes int) error {
	if err := Known(name); err != nil || nodes <= 1 {
		return err
	}
	var far []string
	for _, n := range NICs() {
		if n.Nodes {
			far = append(far, n.Name)
		}
	}
	if slices.Contains(far, name) {
		return nil
	}
	return fmt.Errorf("%w: %s connects the ranks of one node only, and these are on %d; what connects them: %s",
		transport.ErrUnsupported, name, nodes, strings.Join(far, ", "))
}

// Provider returns the NIC called name.
func Provider(name string, c Config) (transport.Provider, error) {
	switch name {
	case "soft":
		return soft.New(soft.Config{
			Mapper: c.SoftMapper, Latency: c.SoftLatency, Bandwidth: c.SoftBandwidth,
			FailureTimeout: c.FailureTimeout, MaxPinned: c.MaxPinned,
		}), nil
	case "tcp":
		return tcp.New(tcp.Config{AcrossNodes: c.AcrossNodes, FailureTimeout: c.FailureTimeout, MaxPinned: c.MaxPinned}), nil
	case "verbs":
		return verbs.Provider{MaxPinned: c.MaxPinned, FailureTimeout: c.FailureTimeout}, nil
	}
	return nil, fmt.Errorf("%w: no NIC is called %q; there are: %s", transport.ErrUnsupported, name, Names())
}

// PeerBytes is how much memory of each peer the NIC called name maps in a world of so many ranks; 0: none.
func PeerBytes(name string, ranks int) int {
	if name == "soft" {
		return soft.Config{}.BoardBytes(ranks)
	}
	return 0
}

// Probe opens the NIC called name on device, as a job of one rank, and closes it again. Its error says what this machine
// lacks. It takes some milliseconds at most and leaves nothing behind.
func Probe(ctx context.Context, name, device string, c Config) error {
	p, err := Provider(name, c)
	if err != nil {
		return err
	}
	d, err := p.Open(ctx, transport.Config{Rank: 0, Size: 1, Job: "probe", Secret: []byte("probe"), Device: device, Sched: sched.Process(1)})
	if err != nil {
		return err
	}
	return d.Close()
}
