package regmgr

import (
	"fmt"
	"time"

	"gopgas/internal/cost"
	"gopgas/internal/mem"
)

// Facts are what is known of machine, job and NIC when nobody has said which policy is wanted.
type Facts struct {
	Idle   int        // cores of the node on which no rank computes: a helper needs one
	Bytes  int64      // what the rank may have registered at once; 0: no limit
	Memory int64      // the rank's share of the machine's memory; 0: nobody knows
	Costs  cost.Model // of machine and NIC; PageBytes is 0 where they are not known
}

// What decides.
const (
	// scarce is the part of a rank's memory, 1 to that, below which a budget is taken to be too little for a program that uses its
	// memory.
	scarce = 4
	// leastPrice is the part of a transfer's time that a registration must be worth: a helper may make transfers longer by 5 %
	// (Li et al., CF 2011, section 6.1).
	leastPrice = 0.05
	// typical is the transfer that is priced.
	typical = 1 << 20
)

// Prefer returns the policy of which f says that it pays, and why: a pure function. Where measure is set the answer depends on costs that are
// not known. LeavePinned never registers twice what fits into the budget, so Predictive can only be ahead of it where a program comes back
// to more than that: then the former pays in each transfer for a registration, or for a copy where that is cheaper, and the latter in none
// that it foresees. It takes a core of its own for that.
func (f Facts) Prefer() (p Policy, why string, measure bool) {
	little := fmt.Sprintf("only %s may be registered of %s of memory", mem.Text(f.Bytes), mem.Text(f.Memory))
	switch {
	case f.Idle <= 0:
		return LeavePinned, "no core is idle for a helper", false
	case f.Bytes <= 0:
		return LeavePinned, "registered memory has no limit: what is registered once stays", false
	case f.Memory <= 0:
		return LeavePinned, "how much memory there is to be registered is not known", false
	case f.Bytes >= f.Memory/scarce:
		return LeavePinned, fmt.Sprintf("%s may be registered of %s of memory: what is registered once stays", mem.Text(f.Bytes), mem.Text(f.Memory)), false
	case f.Costs.PageBytes == 0:
		return LeavePinned, little + ", but what a registration costs is not known", true
	}
	price, whole := missPrice(&f.Costs)
	paid := fmt.Sprintf("to find %s unregistered costs %v of %v", mem.Text(typical), price, whole)
	if float64(price) < leastPrice*float64(whole) {
		return LeavePinned, little + ", but " + paid, false
	}
	return Predictive, little + ", " + paid + ", and a core is idle", false
}

// missPrice returns what a typical transfer pays whose memory is not registered, by the cheaper way, and how long it takes to move its
// bytes: where that is not known, as long as to copy them.
func missPrice(m *cost.Model) (price, whole time.Duration) {
	price = m.OnDemand(typical)
	copied := m.Copy.At(typical)
	if copied > 0 {
		price = min(price, copied)
	}
	if whole = m.Transfer.At(typical); whole == 0 {
		whole = max(copied, price)
	}
	return price, whole
}
