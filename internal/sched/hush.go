package sched

// Some NICs wake somebody of this rank with each arrival. Who polls without a pause finds the arrival himself, and whoever was wakened for it takes a core
// from those who serve the next operation: two ranks on two cores took two to three times as long for that. So a wait tells such a NIC for how
// long it polls without a pause, and when it goes on to yield, sleep or end, which is when somebody has to be wakened again.

// Hushable is implemented by the domains of such NICs.
type Hushable interface {
	// Hush(true) says that somebody polls without a pause from now on, or has nothing to do but post and poll; Hush(false) that he does so no longer. Any
	// number may do so at a time.
	Hush(on bool)
}

// Hushes has the wait, whose caller polls between its steps, tell h that it spins. h may be nil: then there is nothing to tell.
func (sp *Spin) Hushes(h Hushable) { sp.polled, sp.hushable = true, h }

func (sp *Spin) hush(h Hushable) {
	if h != nil && sp.hushed == nil {
		sp.hushed = h
		h.Hush(true)
	}
}

func (sp *Spin) unhush() {
	if sp.hushed != nil {
		sp.hushed.Hush(false)
		sp.hushed = nil
	}
}
