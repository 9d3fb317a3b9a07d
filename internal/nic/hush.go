package nic

// Some NICs wake somebody of this rank with each arrival. Who polls without a pause finds the arrival himself, and whoever was wakened for it takes a core
// from those who serve the next operation: two ranks on two cores took two to three times as long for that. So a wait tells such a NIC for how
// long it polls without a pause, and when it goes on to yield, sleep or end, which is when somebody has to be wakened again.

// hushable is implemented by the domains of such NICs.
type hushable interface {
	// Hush(true) says that somebody polls without a pause from now on, Hush(false) that he does so no longer. Any number may do so at a time.
	Hush(on bool)
}

// hushAfter is how many looks in vain a wait makes before it tells: the shortest ones tell nothing.
const hushAfter = 4

// hush is what one wait has told.
type hush struct {
	d    hushable // nil: there is nothing to tell
	vain int
	on   bool
}

// looked is called after a look in vain; spinning says that the wait makes no pauses yet.
func (h *hush) looked(spinning bool) {
	switch {
	case h.d == nil:
	case !spinning:
		h.end()
	case !h.on:
		if h.vain++; h.vain == hushAfter {
			h.on = true
			h.d.Hush(true)
		}
	}
}

// end is called when the wait goes on to pause, and when it is over.
func (h *hush) end() {
	if h.on {
		h.on = false
		h.d.Hush(false)
	}
}
