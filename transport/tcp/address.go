package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"gopgas/transport"
)

// address is what Domain.Address says: where a rank listens, and which of its domains that is.
type address struct {
	rank     uint32
	instance uint64 // drawn when the domain was opened: a rank that was started anew has another
	places   []netip.AddrPort
}

// Form of an address: mark, rank, instance, number of places; for each place the length of the IP, the IP and
// the port.
const (
	addressMark = 0x01706374 // "tcp" and the form's version
	addressHead = 4 + 4 + 8 + 1
	maxPlaces   = 8
)

var errAddress = errors.New("not the address of a tcp NIC")

func (a address) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, addressMark)
	b = binary.LittleEndian.AppendUint32(b, a.rank)
	b = binary.LittleEndian.AppendUint64(b, a.instance)
	b = append(b, byte(len(a.places)))
	for _, p := range a.places {
		ip := p.Addr().AsSlice()
		b = append(append(b, byte(len(ip))), ip...)
		b = binary.LittleEndian.AppendUint16(b, p.Port())
	}
	return b
}

func parseAddress(b []byte) (a address, err error) {
	if len(b) < addressHead || binary.LittleEndian.Uint32(b) != addressMark {
		return a, errAddress
	}
	a.rank, a.instance = binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:])
	n := int(b[16])
	b = b[addressHead:]
	if n == 0 || n > maxPlaces {
		return address{}, errAddress
	}
	for range n {
		if len(b) < 1 || len(b) < 1+int(b[0])+2 {
			return address{}, errAddress
		}
		ip, ok := netip.AddrFromSlice(b[1 : 1+int(b[0])])
		if !ok || ip.IsUnspecified() {
			return address{}, errAddress
		}
		b = b[1+int(b[0]):]
		a.places = append(a.places, netip.AddrPortFrom(ip, binary.LittleEndian.Uint16(b)))
		b = b[2:]
	}
	if len(b) != 0 {
		return address{}, errAddress
	}
	return a, nil
}

var (
	errAnywhere  = errors.New("this would listen on every network of the machine: name an interface, such as \"eth0\", or one address")
	errLinkLocal = errors.New("who connects to a link-local address must say by which interface, which is not the same on every machine: name another address, " +
		"or the interface, if that has another one")
	errNoNetwork = errors.New("this machine has no address that another could reach: name one with the NIC's device (PGAS_DEVICE), " +
		"or bring an interface up")
)

// listenOn chooses the addresses to listen on, by the rules that doc.go states.
func listenOn(device string, acrossNodes bool) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(device); err == nil {
		if ip.IsUnspecified() {
			return nil, fmt.Errorf("device %q: %w", device, errAnywhere)
		}
		if ip.Unmap().Is6() && ip.IsLinkLocalUnicast() {
			return nil, fmt.Errorf("device %q: %w", device, errLinkLocal)
		}
		return []netip.Addr{ip.Unmap()}, nil
	}
	if device == "" && !acrossNodes {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	var all []net.Interface
	if device == "" {
		list, err := net.Interfaces()
		if err != nil {
			return nil, fmt.Errorf("list the network interfaces: %w", err)
		}
		for _, i := range list {
			if i.Flags&net.FlagUp != 0 && i.Flags&(net.FlagLoopback|net.FlagPointToPoint) == 0 {
				all = append(all, i)
			}
		}
	} else {
		i, err := net.InterfaceByName(device)
		if err != nil {
			return nil, fmt.Errorf("device %q is neither an address nor an interface of this machine, which has %s: %w (%w)",
				device, interfaces(), transport.ErrUnsupported, err)
		}
		all = append(all, *i)
	}
	var ips []netip.Addr
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("addresses of interface %s: %w", i.Name, err)
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				ips = append(ips, p.Addr().Unmap())
			}
		}
	}
	if ips = reachable(ips); len(ips) == 0 {
		return nil, fmt.Errorf("device %q: %w", device, errNoNetwork)
	}
	return ips, nil
}

// reachable leaves out addresses that mean something else on every link, puts IPv4 first, and keeps few.
func reachable(ips []netip.Addr) []netip.Addr {
	ips = slices.DeleteFunc(ips, func(a netip.Addr) bool {
		return a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified()
	})
	slices.SortStableFunc(ips, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return ips[:min(len(ips), maxPlaces)]
}

// interfaces names those of this machine, for a person.
func interfaces() string {
	all, err := net.Interfaces()
	if err != nil || len(all) == 0 {
		return "none that can be listed"
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return strings.Join(names, ", ")
}
