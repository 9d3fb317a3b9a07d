package regmgr

import (
	"fmt"
	"strings"
)

// Policy is what happens to memory that transfers need registered.
type Policy int

// The policies.
const (
	// LeavePinned keeps what was registered once until the budget needs the room; then what was not used for the longest
	// time goes first. Where even that does not help, transfers are copied.
	LeavePinned Policy = iota
	// Bounce registers nothing: all is copied through memory registered at the start.
	Bounce
	// OnDemand registers for each transfer and deregisters after it.
	OnDemand
	// LeavePinnedNoEvict keeps everything and never copies: at the limit the transfer fails (as Open MPI 1.4 did).
	LeavePinnedNoEvict
	// Pipelined registers large transfers a fragment at a time, the next one while the last one travels, and
	// deregisters each after its transfer; smaller ones are copied (Woodall et al., Euro PVM/MPI 2006).
	Pipelined
	// PipelinedLeavePinned is Pipelined with the fragments kept as LeavePinned keeps regions.
	PipelinedLeavePinned
	// Predictive registers shortly before the next use that is expected and deregisters in between (Li et al., CF 2011).
	Predictive
	policies
)

// names of the policies, as PGAS_REG spells them.
func (p Policy) names() [policies]string {
	return [...]string{
		LeavePinned: "leavepinned", Bounce: "bounce", OnDemand: "ondemand", LeavePinnedNoEvict: "leavepinned-noevict",
		Pipelined: "pipelined", PipelinedLeavePinned: "pipelined-leavepinned", Predictive: "predictive",
	}
}

// String returns the policy's name as PGAS_REG spells it.
func (p Policy) String() string { return p.names()[p] }

// Policies lists the names of all policies, for help texts.
func Policies() string {
	all := Policy(0).names()
	return strings.Join(all[:], ", ")
}

// ParsePolicy returns the policy of that name; the empty name is the default, LeavePinned.
func ParsePolicy(name string) (Policy, error) {
	if name == "" {
		return LeavePinned, nil
	}
	for p, n := range Policy(0).names() {
		if n == name {
			return Policy(p), nil
		}
	}
	return 0, fmt.Errorf("policy of registration %q: want one of: %s", name, Policies())
}

// keeps reports whether idle regions stay registered.
func (p Policy) keeps() bool {
	return p == LeavePinned || p == LeavePinnedNoEvict || p == PipelinedLeavePinned
}

// evicts reports whether idle regions are given up, and transfers copied, for want of room.
func (p Policy) evicts() bool { return p != LeavePinnedNoEvict }

// Sizes from which policies register, in bytes.
const (
	// LeastRegistered is the default of Config.Threshold: the paper's helper threads work from 16 KiB on.
	LeastRegistered = 16 << 10
	// LeastPipelined is where pipelined registration begins; it copies what is smaller.
	LeastPipelined = 1 << 20
	// fragmentBytes is a piece of a pipelined transfer, and Depth how many of them are in flight.
	fragmentBytes = 512 << 10
	pipelineDepth = 3
)

// Plan says how one transfer is registered.
type Plan struct {
	Register bool // false: copy it
	Fragment int  // bytes registered at a time; the last piece may be shorter
	Depth    int  // pieces that may be registered at once for this transfer
}

// PlanFor decides how the policy registers a transfer of so many bytes: a pure function of its arguments. threshold is the
// size below which a registered transfer costs more than a copied one.
func (p Policy) PlanFor(bytes, threshold int) Plan {
	switch {
	case p == Bounce || bytes <= 0 || bytes < threshold:
		return Plan{}
	case p != Pipelined && p != PipelinedLeavePinned:
		return Plan{Register: true, Fragment: bytes, Depth: 1}
	case bytes < LeastPipelined:
		return Plan{}
	default:
		return Plan{Register: true, Fragment: fragmentBytes, Depth: pipelineDepth}
	}
}
