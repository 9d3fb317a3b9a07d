// Package auto knows the transports of this build by the names that PGAS_TRANSPORT takes.
package auto

import (
	"fmt"
	"strings"
	"time"

	"gopgas/transport"
	"gopgas/transport/soft"
)

// Config holds the settings of single transports.
type Config struct {
	SoftLatency   time.Duration // PGAS_SOFT_LATENCY
	SoftBandwidth int64         // PGAS_SOFT_BANDWIDTH, bytes per second
}

// Info describes a transport.
type Info struct{ Name, What string }

// NICs lists the transports that are NICs, best first.
func NICs() []Info {
	return []Info{
		{"soft", "a software NIC inside one machine: queues in shared memory, an engine thread for each rank"},
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

// Provider returns the NIC called name.
func Provider(name string, c Config) (transport.Provider, error) {
	switch name {
	case "soft":
		return soft.New(soft.Config{Latency: c.SoftLatency, Bandwidth: c.SoftBandwidth}), nil
	}
	return nil, fmt.Errorf("%w: no NIC is called %q; there are: %s", transport.ErrUnsupported, name, Names())
}
