package selector

// Protocol is how one put or get over a NIC travels.
type Protocol uint8

// The protocols, in the order in which the first of equals is taken.
const (
	None      Protocol = iota // no protocol can do it
	Inline                    // the payload goes with the operation
	Direct                    // the NIC uses the caller's memory, which is registered
	Bounce                    // through a bounce slot
	Register                  // registered now and kept, then direct
	Pipe                      // superpipeline to or from the target's registered memory
	Hybrid                    // superpipeline for the head while the tail is being registered
	Message                   // an active message: the target's CPU copies
	Lease                     // superpipeline into workspace of the target, whose CPU copies
	Protocols                 // how many there are
)

var protocolNames = [...]string{"none", "inline", "direct", "bounce", "register", "superpipe", "hybrid", "message", "lease"}

// String names the protocol as statistics and pgasrun info print it.
func (p Protocol) String() string { return protocolNames[min(p, Protocols-1)] }

// Query is what is known of one put or get. The zero Query is a put of nothing to registered memory.
type Query struct {
	Bytes  int
	Get    bool
	Waited bool // somebody waits for its completion; of a put that nobody waits for, the source must be free soon

	Covered bool  // the caller's memory is registered
	Uses    uint8 // how many transfers a registration of it would serve: counted (hot) or predicted; 0 and 1: this one
	Seen    bool  // the NIC has used it before, though it is registered no longer: what Cost computes; Select takes it to be new to the NIC

	Moves uint8 // of firehoses that come first, since the target's memory can be registered for this rank but is not; 0: it is
	Never bool  // the target's memory will not be registered

	NoPipe bool // no pipe can carry it: too few of the target's buckets are given at once, or the caller's memory may not outlive the call
	NoTail bool // no helper may register the caller's memory meanwhile, which makes a hybrid a pipe
}

// bars reports whether a protocol cannot carry the query, whatever it would cost.
func (q Query) bars(p Protocol) bool {
	return q.NoPipe && (p == Pipe || p == Hybrid) || q.NoTail && p == Hybrid
}
