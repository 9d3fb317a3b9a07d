package proto

import "gopgas/regmgr"

// prefer decides the policy where nobody has asked for one, by what is known of machine and NIC; r.Bytes is the budget already. Costs are measured only
// where the answer depends on them; where they cannot be the policy is the one that does without. In virtual time nothing is decided: no core is idle there, or all are.
func (n *device) prefer(r *Registration) (why string) {
	switch {
	case !r.Preferred:
		return "asked for"
	case n.e.Sched.Virtual():
		return "virtual time"
	}
	ranks, _ := n.e.here()
	f := regmgr.Facts{Idle: r.Idle.cores() - ranks, Bytes: r.Bytes, Memory: r.Memory / int64(ranks)}
	if n.Caps.Busy { // the NIC has threads of its own
		f.Idle -= ranks
	}
	if r.Costs != nil {
		f.Costs = *r.Costs
	}
	p, why, measure := f.Prefer()
	if measure {
		ask := *r
		ask.Policy = regmgr.Predictive
		var err error
		if f.Costs, err = n.costs(ask); err != nil {
			why += ": " + err.Error()
		} else if p, why, _ = f.Prefer(); p == regmgr.Predictive {
			r.Costs = &f.Costs
		}
	}
	r.Policy = p
	return why
}

// budget is how much may be registered by r, bytes; 0: there is no limit.
func (n *device) budget(r Registration) int64 {
	limit := n.pinnable()
	if r.Bytes == 0 || limit > 0 && r.Bytes > limit {
		return limit
	}
	return r.Bytes
}

// Preferred returns the policy to which r comes over the engine's NIC, which is open, and why; the engine's own stays what it is.
func (e *Engine) Preferred(r Registration) (p regmgr.Policy, why string) {
	n := e.nic()
	r.Bytes = n.budget(r)
	why = n.prefer(&r)
	return r.Policy, why
}
