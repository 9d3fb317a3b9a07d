package sched

// Some NICs wake somebody of this rank with each arrival. Who polls without a pause finds the arrival himself, and whoever was wakened for it takes a core
// from those who serve the next operation: two ranks on two cores took two to three times as long for that. So a wait tells such a NIC for how
// long it polls without a pause, and when it goes on to yield, sleep or end, which is when somebody has to be wakened again.

// Hushable is implemented by the domains of such NICs.
type Hushable interface {
	// Hush(true) says that somebody polls without a pause from now on, Hush(false) that he does so no longer. Any number may do so at a time.
	Hush(on bool)
}

// hushAfter is how many steps a wait makes before it tells: the shortest ones tell nothing.
const hushAfter = 4

// Hushes has the wait tell h, which may be nil: then there is nothing to tell.
func (sp *Spin) Hushes(h Hushable) { sp.hushable = h }

// hush is called before the step that is to tell.
func (sp *Spin) hush() {
	if sp.hushable != nil && sp.began == 0 {
		sp.hushed = true
		sp.hushable.Hush(true)
	}
}

func (sp *Spin) unhush() {
	if sp.hushed {
		sp.hushed = false
		sp.hushable.Hush(false)
	}
}
