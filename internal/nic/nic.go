package nic

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/internal/am"
	"gopgas/internal/bounce"
	"gopgas/internal/inflight"
	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Sizes of a NIC's buffers.
const (
	SlotBytes    = 64 << 10              // of a slot, at most: one piece of what is copied
	ScratchBytes = inflight.ScratchBytes // of a piece without a slot; also the largest inline payload
	Pieces       = 256                   // operations in flight at once; they are numbered from 0
	Batch        = 64                    // operations that cross into the NIC together, at most

	slots      = 32
	slotsLeast = 4
	slotsShare = 8 // of what the NIC may pin, slots take at most so small a part, but for those
	pollBatch  = 64
)

// NIC is a NIC as one rank uses it. New makes it; it is not copied. Any goroutine may call any method, but for what says otherwise.
type NIC struct {
	// What New was told or has found, and is never changed.
	Name    string
	Domain  transport.Domain
	Caps    transport.Caps
	Inline  int // the largest payload that is sent inline, bytes
	Slot    int // bytes of a slot of the bounce pool
	Slots   int // how many of them there are
	Payload int // of a message, bytes at most; 0: there are no messages. Listen sets it

	sched  *sched.Sched
	peers  *peers.Table
	client Client

	solicited solicited // the Domain, if it is one, and time is real

	hushable sched.Hushable // the Domain, if it is one
	hastener hastener       // likewise

	rank int
	am   *am.AM // nil: there are no messages

	poll place // the poller's

	crowd        crowd
	forPieces    line // who is in it may have a transfer,
	forTransfers line // and here nothing

	ends []*endpoint // by rank

	pollers    atomic.Int32  // goroutines that poll while they wait
	waits      atomic.Uint64 // that have begun to poll, roughly: nobody counts exactly at the price of an exchange
	posts      atomic.Uint64 // for which somebody may wait later, as roughly: see used
	lookAt     atomic.Uint64 // behind how many posts and waits somebody looks at the clock next
	until      atomic.Uint64 // how many that was from the last look on
	looked     atomic.Int64  // when one did, nanoseconds
	lazy       atomic.Int32  // endpoints that have lazy operations, or had
	slept      atomic.Uint64 // waits that went past their spinning
	unattended atomic.Bool   // attend has ended
	asleep     atomic.Bool   // attend sleeps until the NIC has something, or is about to
	dozing     atomic.Bool   // attend sleeps for what peers send, or is about to
	piped      atomic.Int32  // operations of pipes that the NIC has
	closed     atomic.Bool   // this rank's NIC is closed or has failed: nothing completes any more
	nap        sched.Event
	ctx        context.Context // ends with the NIC's use
	stop       context.CancelFunc
	between    time.Duration // two looks of seek; seekPause but in tests
	helpers    atomic.Int32  // what runs beside the program: menders, and what Go was given

	news      atomic.Bool // a rank was lost since spread last ran
	spreading atomic.Bool

	mu        sync.Mutex
	table     inflight.Table // of pieces and transfers; under mu
	footprint int            // of the buffers of pieces, bytes

	// Long ones last: what most operations look at lies close together.
	later later // operations for which nobody waits yet
	cq    [pollBatch]transport.Completion
}

// Config is what a NIC is made of.
type Config struct {
	Rank, Size int
	Name       string // for errors
	Domain     transport.Domain
	Sched      *sched.Sched
	Peers      *peers.Table
	Slots      int  // of the bounce pool; 0: 32, or fewer where little may be pinned
	NoInline   bool // all payloads are sent from registered memory
	Client     Client
}

// Client is who has a NIC's operations carried out, and is told what he cannot learn from return values. Landed, LetGoLocked and Reported
// are called by whoever finds that a piece is over, which is the poller, or somebody who could not post it, all else but Tell by the poller.
// Only Tell may wait. No lock of this package is held, but where that is said.
type Client interface {
	// How a piece ends. Whoever waits for it learns of its end afterwards.

	// Landed says that the NIC has nothing to do with piece id any more: what its operation was lent may be given back. See NIC.Lend.
	Landed(id int32)
	// LetGoLocked is Landed under the NIC's lock, for a piece that was tied: see NIC.Tie.
	LetGoLocked(id int32)
	// Reported says how the operation ended that TryPost was given with cookie.
	Reported(cookie uint64, err error)

	// What peers ask, and what becomes of what they are asked by TryAsk.

	// Handle performs a request of a peer, as am.Handler says. Status 0 is success.
	Handle(r am.Request, out []byte) (bytes int, status uint8)
	// Answered takes the answer to a request with a cookie of the client's. With err there is none. r.Payload is good until it returns.
	Answered(r am.Reply, err error)
	// GaveUp says that the connection with a rank could not be mended, or that it is gone: see peers.Table. No answers come to the client's
	// requests with these cookies, and nothing of what it has under way with that rank goes on by itself.
	GaveUp(rank int, cookies []uint64, err error)
	// Arrived takes what a peer has sent that is no message; it reports false for what is not its own.
	Arrived(c *transport.Completion) bool

	// What else goes on while somebody polls, or nobody does.

	// Advance moves along what waits for completions, and reports whether anything moved.
	Advance() (moved bool)
	// Watchful reports whether the client waits for what the NIC does not report: then somebody looks instead of sleeping. Who makes it
	// so calls Domain.Wake.
	Watchful() bool
	// Tell tells the other ranks who is gone. It runs beside the program. missed: somebody could not be told, and it is to be called again.
	Tell() (missed bool)
}

// New registers the buffers of pieces. The NIC is not polled before Start; until then the Domain remains the caller's to close.
func New(c Config) (*NIC, error) {
	n := &NIC{
		Name: c.Name, Domain: c.Domain, Caps: c.Domain.Caps(), ends: make([]*endpoint, c.Size),
		sched: c.Sched, peers: c.Peers, client: c.Client, rank: c.Rank, between: seekPause,
	}
	ends := make([]endpoint, c.Size)
	for r := range ends {
		n.ends[r] = &ends[r]
		ends[r].rank = r
	}
	if !c.NoInline {
		n.Inline = min(n.Caps.MaxInline, n.Caps.MaxMessage, ScratchBytes)
	}
	n.Slot, n.Slots = min(SlotBytes, n.Caps.MaxMessage), c.Slots
	if n.Slots == 0 {
		n.Slots = slotsFor(n.Caps.MaxPinned, SlotBytes)
	}
	n.crowd.look = everybody
	if n.hushable, _ = c.Domain.(sched.Hushable); n.hushable != nil {
		n.crowd.look = c.Sched.Cores()
	}
	n.hastener, _ = c.Domain.(hastener)
	if d, ok := c.Domain.(solicited); ok && !c.Sched.Virtual() {
		n.solicited = d
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	if err := n.afford(); err != nil {
		return n, err
	}
	return n, n.prepareTable()
}

// prepareTable registers the buffers of pieces.
func (n *NIC) prepareTable() error {
	scratch := mem.Make(Pieces * ScratchBytes)
	bufs := mem.Make(n.Slots * SlotBytes)
	pool := bounce.New(bufs, n.Slot)
	n.Slots, n.footprint = pool.Bytes()/n.Slot, bufs.Bytes+scratch.Bytes // shorter slots are more
	scratchKey, err := n.Domain.Register(scratch, transport.LocalWrite)
	if err != nil {
		return fmt.Errorf("register %d bytes of scratch memory: %w", scratch.Bytes, err)
	}
	poolKey, err := n.Domain.Register(bufs, transport.LocalWrite)
	if err != nil {
		return fmt.Errorf("register %d bytes of bounce buffers: %w", bufs.Bytes, err)
	}
	n.table.Init(inflight.Config{
		Pieces: Pieces, Pool: pool, PoolKey: poolKey.LKey, Scratch: scratch, ScratchKey: scratchKey.LKey,
	})
	return nil
}

// Footprint is what the NIC has registered for itself, bytes.
func (n *NIC) Footprint() int {
	if n.am == nil {
		return n.footprint
	}
	return n.footprint + n.am.Footprint()
}

// Start lets the rank's waits poll, and has somebody attend to the NIC while there are none. It is called once, when Listen, if at
// all, has been.
func (n *NIC) Start() {
	n.sched.SetProgress(n.Progress, n.server())
	n.sched.Go(n.attend)
	if d, ok := n.Domain.(rejoiner); ok {
		n.Go(func() { n.seek(d) })
	}
}

// Quit lets nobody poll any more and returns when nobody does: from now on it is no news that the peers' NICs close. All waits end.
// The Domain is the caller's to close.
func (n *NIC) Quit() {
	n.closed.Store(true)
	n.stop()
	n.nap.Set()
	n.Domain.Wake()
	sp := n.sched.Begin(context.Background(), sched.What{Op: "close", Peer: -1}, nil)
	defer sp.End()
	for !n.unattended.Load() || !n.poll.take() { // a poller may be at work still, and start a mender
		_ = sp.Step() // without a deadline and a watch there is no error but that of a simulated world, whose helpers end
	}
	for n.helpers.Load() != 0 {
		_ = sp.Step()
	}
	n.poll.leave()
}

// Closed reports whether this rank's NIC is closed or has failed: nothing completes any more.
func (n *NIC) Closed() bool { return n.closed.Load() }

// Parted reports whether Quit has been called.
func (n *NIC) Parted() bool { return n.ctx.Err() != nil }

// Context ends with the NIC's use.
func (n *NIC) Context() context.Context { return n.ctx }

// Go runs f beside the program. Quit waits for its end, which must come soon then: f's waits end with Context.
func (n *NIC) Go(f func()) {
	n.helpers.Add(1)
	n.sched.Go(func() {
		defer n.helpers.Add(-1)
		f()
	})
}

// Lock takes the lock of the table of pieces and transfers, for methods whose names end in Locked: what the client keeps under the
// same lock it can take together with a piece. It is never held across a wait, a post or a registration.
func (n *NIC) Lock() { n.mu.Lock() }

// Unlock gives Lock's lock back.
func (n *NIC) Unlock() { n.mu.Unlock() }
