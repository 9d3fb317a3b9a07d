package verbs

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
)

// Device describes one port of one device, for people.
type Device struct {
	Name    string // "mlx5_0:1", as Config.Device takes it
	Active  bool
	Link    string // "InfiniBand" or "Ethernet"
	Address string // of the GID in use; empty: there is none that can be used
	Problem string // why the port cannot be used; empty: it can

	MTU        int // bytes
	MaxMessage int // bytes
	MaxRegions int
	MaxPairs   int
	MaxCQE     int
	Atomics    bool
	Firmware   string
}

// port is one port of an open device with what was chosen on it.
type port struct {
	device string
	number int
	limits ibv.Limits
	state  ibv.Port
	gid    ibv.GID
	pkey   int // index of the partition key
	err    error
}

func (p *port) name() string { return p.device + ":" + strconv.Itoa(p.number) }

// Devices lists the ports of all RDMA devices of this machine. The error wraps transport.ErrUnsupported where there is
// no RDMA at all.
func Devices() ([]Device, error) {
	names, err := deviceNames()
	if err != nil {
		return nil, err
	}
	var list []Device
	for _, name := range names {
		context, ports, err := openDevice(name)
		if err != nil {
			list = append(list, Device{Name: name, Problem: err.Error()})
			continue
		}
		for i := range ports {
			list = append(list, describe(&ports[i]))
		}
		if err := ibv.Close(context); err != nil {
			return nil, fmt.Errorf("close device %s: %w", name, err)
		}
	}
	return list, nil
}

// Find describes the port that Open would use for Config.Device, or says why there is none.
func Find(device string) (Device, error) {
	context, p, err := openPort(device)
	if err != nil {
		return Device{}, err
	}
	d := describe(&p)
	if err := ibv.Close(context); err != nil {
		return Device{}, fmt.Errorf("close device %s: %w", p.device, err)
	}
	return d, nil
}

func describe(p *port) Device {
	d := Device{
		Name: p.name(), Active: p.state.State == ibv.PortActive, Link: "Ethernet",
		MTU: mtuBytes(p.state.MTU), MaxMessage: int(p.state.MaxMessage), MaxRegions: int(p.limits.MaxRegions),
		MaxPairs: int(p.limits.MaxPairs), MaxCQE: int(p.limits.MaxCQE), Atomics: p.limits.Atomics != 0,
	}
	d.Firmware, _, _ = strings.Cut(string(p.limits.Firmware[:]), "\x00")
	if p.state.LinkLayer == ibv.LinkInfiniBand {
		d.Link = "InfiniBand"
	}
	if p.err != nil {
		d.Problem = p.err.Error()
	} else {
		d.Address = netip.AddrFrom16(p.gid.Raw).Unmap().String()
	}
	return d
}

func mtuBytes(code uint32) int { return 128 << min(code, 5) }

// deviceNames returns the names of the devices, at least one.
func deviceNames() ([]string, error) {
	if err := ibv.Load(); err != nil {
		return nil, fmt.Errorf("verbs: %w (install the Debian packages libibverbs1 and ibverbs-providers): %w", err, transport.ErrUnsupported)
	}
	names, err := ibv.Devices()
	if err != nil {
		return nil, fmt.Errorf("verbs: the kernel has no RDMA support loaded (%w): %w", err, transport.ErrUnsupported)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("verbs: this machine has no RDMA device: %w", transport.ErrUnsupported)
	}
	return names, nil
}

// openDevice opens a device and looks at all its ports.
func openDevice(name string) (context uint64, ports []port, err error) {
	context, limits, err := ibv.Open(name)
	if err != nil {
		return 0, nil, fmt.Errorf("verbs: open device %s: %w", name, err)
	}
	gids, gidErr := ibv.QueryGIDs(context)
	for n := 1; n <= int(limits.Ports); n++ {
		p := port{device: name, number: n, limits: limits}
		if p.state, p.err = ibv.QueryPort(context, n); p.err != nil {
			p.err = fmt.Errorf("query port: %w", p.err)
		} else if gidErr != nil {
			p.err = fmt.Errorf("read the address table: %w", gidErr)
		} else if p.state.State != ibv.PortActive {
			p.err = errInactive
		} else if p.gid, p.err = chooseGID(gids, n, p.state.LinkLayer); p.err == nil {
			p.pkey, p.err = choosePKey(int(p.state.PKeys), func(i int) (uint16, error) { return ibv.QueryPKey(context, n, i) })
		}
		ports = append(ports, p)
	}
	return context, ports, nil
}

var (
	errInactive = errors.New("the port has no link: bring its interface up, or look at the cable and the switch")
	errNoPKey   = errors.New("the port's table of partition keys is empty: the subnet manager has not set it up")
	errNoLID    = errors.New("the port has no address of type InfiniBand")
)

// chooseGID returns the entry of a port's address table that connections use. Over Ethernet it is of RoCE v2; one that
// stands for an IPv4 address comes first, then other global ones, then link-local ones.
func chooseGID(gids []ibv.GID, port int, linkLayer uint32) (ibv.GID, error) {
	best, rank, others := ibv.GID{}, 0, 0
	for _, g := range gids {
		if int(g.Port) != port {
			continue
		}
		if linkLayer == ibv.LinkInfiniBand {
			if g.Type == ibv.GIDInfiniBand {
				return g, nil
			}
			continue
		}
		if g.Type != ibv.GIDRoCE2 {
			others++
			continue
		}
		a, r := netip.AddrFrom16(g.Raw), 2
		switch {
		case a.Is4In6():
			r = 3
		case a.IsLinkLocalUnicast():
			r = 1
		}
		if r > rank {
			best, rank = g, r
		}
	}
	switch {
	case rank > 0:
		return best, nil
	case linkLayer == ibv.LinkInfiniBand:
		return best, errNoLID
	default:
		return best, fmt.Errorf("none of the port's addresses can be used: %d are of RoCE v1, none is of RoCE v2; "+
			"give its interface an IP address", others)
	}
}

// choosePKey returns the index of the first partition key in a port's table of so many, full members' keys (bit 15) first; read returns
// one. A key of 0 is no entry.
func choosePKey(size int, read func(i int) (uint16, error)) (int, error) {
	first := -1
	for i := range min(size, 128) {
		key, err := read(i)
		if err != nil {
			return 0, fmt.Errorf("read partition key %d: %w", i, err)
		}
		switch {
		case key&0x8000 != 0:
			return i, nil
		case key != 0 && first < 0:
			first = i
		}
	}
	if first < 0 {
		return 0, errNoPKey
	}
	return first, nil
}

// parseDevice takes "mlx5_0:1", "mlx5_0" (any port) or "" (any port of any device) apart.
func parseDevice(s string) (device string, port int, err error) {
	device, number, found := strings.Cut(s, ":")
	if !found {
		return device, 0, nil
	}
	port, err = strconv.Atoi(number)
	if err != nil || port < 1 || device == "" {
		return "", 0, fmt.Errorf("verbs: device %q: want a name and a port, such as mlx5_0:1", s)
	}
	return device, port, nil
}

// openPort opens the port that want names, or the first usable one.
func openPort(want string) (context uint64, chosen port, err error) {
	device, number, err := parseDevice(want)
	if err != nil {
		return 0, chosen, err
	}
	names, err := deviceNames()
	if err != nil {
		return 0, chosen, err
	}
	var problems []string
	for _, name := range names {
		if device != "" && name != device {
			continue
		}
		context, ports, err := openDevice(name)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		for _, p := range ports {
			switch {
			case number != 0 && p.number != number:
			case p.err != nil:
				problems = append(problems, p.name()+": "+p.err.Error())
			default:
				return context, p, nil
			}
		}
		if err := ibv.Close(context); err != nil {
			problems = append(problems, name+": close: "+err.Error())
		}
	}
	if len(problems) == 0 {
		return 0, chosen, fmt.Errorf("verbs: there is no device %q; there are %s: %w", want, strings.Join(names, ", "), transport.ErrUnsupported)
	}
	return 0, chosen, fmt.Errorf("verbs: no usable port: %s: %w", strings.Join(problems, "; "), transport.ErrUnsupported)
}
