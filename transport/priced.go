package transport

import "time"

// Priced is implemented by domains that know what they and the machine around them cost, since these are simulated: nobody has to measure
// that, or could.
type Priced interface {
	// Costs returns the costs. They are the same for as long as the domain lives; whoever asks may keep them.
	Costs() Costs
}

// Costs are what a machine says that its parts take. What is not mentioned takes no time.
type Costs struct {
	Post, Gap   time.Duration // the processor hands over one operation; the NIC begins one after the other
	Write, Read time.Duration // from the posting of one of no bytes, with a rank of another node, until its completion is taken
	Latency     time.Duration // of those, one way
	Handle      time.Duration // the processor takes a message
	PerByte     float64       // of the wire, seconds

	Register, RegisterPage     time.Duration // of nothing, and more for each page of PageBytes
	Deregister, DeregisterPage time.Duration
	PageBytes                  int

	Copy func(bytes, whole int) time.Duration // of bytes as a part of a copy of whole bytes
}
