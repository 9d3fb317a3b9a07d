package replay

import (
	"fmt"
	"slices"

	"gopgas/internal/predict"
)

// Policy is what is done about memory that a transfer needs registered.
type Policy uint8

// Policies.
const (
	Predictive           Policy = iota // ahead of the next use, by the shortest period of a call site in its context
	Periodicity                        // the same helper with the periodicity-based predictor
	LeavePinned                        // kept until the limit needs room: least recently used first
	LeavePinnedNoEvict                 // kept; at the limit the run fails
	OnDemand                           // for each transfer
	Bounce                             // never: all is copied
	Pipelined                          // large transfers a fragment at a time, smaller ones copied
	PipelinedLeavePinned               // with the fragments kept
)

var policyNames = [...]string{
	Predictive: "predictive", Periodicity: "periodicity", LeavePinned: "leavepinned",
	LeavePinnedNoEvict: "leavepinned-noevict", OnDemand: "ondemand", Bounce: "bounce", Pipelined: "pipelined",
	PipelinedLeavePinned: "pipelined-leavepinned",
}

// String returns the policy's name, as PGAS_REG spells it.
func (p Policy) String() string { return policyNames[p] }

// Policies returns all policies.
func Policies() []Policy {
	var all []Policy
	for p := range policyNames {
		all = append(all, Policy(p))
	}
	return all
}

// ParsePolicy returns the policy of that name.
func ParsePolicy(name string) (Policy, error) {
	if i := slices.Index(policyNames[:], name); i >= 0 {
		return Policy(i), nil
	}
	return 0, fmt.Errorf("registration policy %q: want one of %q", name, policyNames)
}

func (p Policy) helped() bool { return p == Predictive || p == Periodicity }

// Sizes of pipelined registration: below the first it copies; fragments; how many of them there are at once.
const (
	pipelineFrom  = 1 << 20
	fragmentBytes = 512 << 10
	pipelineDepth = 3
)

// span is a range of bytes, [lo, hi). What is charged is the pages that it touches.
type span struct{ lo, hi uint64 }

const pageBytes = 4096

func spanOf(addr, bytes uint64) span {
	return span{addr, addr + max(bytes, 1)}
}

func (s span) pages() uint32 { return uint32((s.hi-1)/pageBytes - s.lo/pageBytes + 1) }
func (s span) bytes() int64  { return int64(s.pages()) * pageBytes }

// fragments cuts a transfer as pipelined registration does.
func fragments(addr, bytes uint64) []span {
	var out []span
	for bytes > 0 {
		n := min(bytes, fragmentBytes)
		out = append(out, spanOf(addr, n))
		addr, bytes = addr+n, bytes-n
	}
	return out
}

// pipelineExposed returns what of a pipelined transfer's registrations does not hide behind its fragments' transfers: all
// of the first, and of the others (with what else is done for each, such as deregistering an earlier one) what exceeds
// the transfer of a fragment.
func pipelineExposed(costs []predict.Nanos, perFragment predict.Nanos) (exposed predict.Nanos) {
	for i, c := range costs {
		if i == 0 {
			exposed += c
		} else {
			exposed += max(0, c-perFragment)
		}
	}
	return exposed
}
