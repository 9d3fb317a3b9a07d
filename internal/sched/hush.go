package sched

// Some NICs wake somebody of this rank with each arrival. Who polls without a pause finds the arrival himself, and whoever was wakened for it takes a core
// from those who serve the next operation: two ranks on two cores took two to three times as long for that. So a wait tells such a NIC for how
// long it polls without a pause, and when it goes on to sleep, or ends, or has yielded to somebody who took the processor: then somebody has to be wakened again.

// Hushable is implemented by the domains of such NICs.
type Hushable interface {
	// Hush says how somebody polls from now on. Any number may do so at a time; each begins with Steadily.
	Hush(how Polling)
}

// Polling is how somebody polls.
type Polling uint8

// The ways of polling.
const (
	Steadily Polling = iota // without a pause, but for yields that nobody takes, or he has nothing to do but post and poll
	Seldom                  // he sleeps, or others run: somebody has to be wakened at once
	NoMore                  // he has what he waited for: who waits often may be back before there is anything to be wakened for
)

// Hushes has the wait, whose caller polls between its steps, tell h that it spins. h may be nil: then there is nothing to tell.
func (sp *Spin) Hushes(h Hushable) { sp.polled, sp.hushable = true, h }

func (sp *Spin) hush(h Hushable) {
	if h != nil && sp.hushed == nil {
		sp.hushed = h
		h.Hush(Steadily)
	}
}

func (sp *Spin) unhush(how Polling) {
	if sp.hushed != nil {
		sp.hushed.Hush(how)
		sp.hushed = nil
	}
}
