package proto

import (
	"fmt"
	"strings"

	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
)

// Bulk forces how large transfers travel whose memory is not registered, or leaves it to the costs. The zero Bulk does that.
type Bulk struct {
	kind   bulkKind
	policy superpipe.Policy
}

type bulkKind uint8

const (
	bulkAuto     bulkKind = iota
	bulkRegister          // as the policy of registration says
	bulkPiped             // never registered
	bulkLeased            // nor is the target's
)

const (
	bulkAutoName     = "auto"
	bulkRegisterName = "register"
	bulkLeaseName    = "lease"
)

// String is ParseBulk's inverse.
func (b Bulk) String() string {
	switch b.kind {
	case bulkRegister:
		return bulkRegisterName
	case bulkLeased:
		return bulkLeaseName
	case bulkPiped:
		return b.policy.String()
	default:
		return bulkAutoName
	}
}

// ParseBulk returns what PGAS_BULK calls name; the empty name is auto.
func ParseBulk(name string) (Bulk, error) {
	switch name {
	case "", bulkAutoName:
		return Bulk{}, nil
	case bulkRegisterName:
		return Bulk{kind: bulkRegister}, nil
	case bulkLeaseName:
		return Bulk{kind: bulkLeased}, nil
	}
	p, err := superpipe.ParsePolicy(name)
	if err != nil {
		return Bulk{}, fmt.Errorf("%q: want one of: %s", name, Bulks())
	}
	return Bulk{bulkPiped, p}, nil
}

// Bulks lists the names that ParseBulk knows.
func Bulks() string {
	names := []string{bulkAutoName, bulkRegisterName, bulkLeaseName}
	for p := superpipe.Super; p <= superpipe.PipelinedPins; p++ {
		names = append(names, p.String())
	}
	return strings.Join(names, ", ")
}

// Force makes this rank's puts and gets of memory over the NIC travel by p from now on, wherever p can carry them; None
// leaves them to the settings again. It is for who compares protocols.
func (e *Engine) Force(p selector.Protocol) {
	if n := e.nic(); n != nil {
		n.forced.Store(uint32(p))
		n.preparePlain()
	}
}

// forcedChoice is what Force makes of a transfer; ok is false where it makes nothing.
func (n *device) forcedChoice() (p selector.Protocol, ok bool) {
	p = selector.Protocol(n.forced.Load())
	switch p {
	case selector.None:
		return p, false
	case selector.Inline, selector.Bounce:
		return selector.Bounce, true
	case selector.Direct, selector.Register:
		return selector.Direct, true
	case selector.Pipe, selector.Hybrid:
		return p, true
	default:
		return p, false
	}
}

// leaseForced reports whether large transfers are to go through leases, by Force or by the settings.
func (n *device) leaseForced() bool {
	return n.bulk.how.kind == bulkLeased || selector.Protocol(n.forced.Load()) == selector.Lease
}
