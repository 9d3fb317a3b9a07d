package flight

import (
	"fmt"
	"sync"
	"sync/atomic"

	"gopgas/internal/am"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/internal/spread"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
)

// Sizes of the superpipeline's workspace.
const (
	Fold       = 3         // slots of a pipe, and of a lease
	Slots      = 6         // of a rank's pipes together
	SlotBytes  = 128 << 10 // of a slot, at most
	MostLeases = 4         // unless Config says otherwise: how many transfers a rank takes in at once. One origin gets half of them

	slotShare = 16 // of what the NIC may pin, workspace takes at most so small a part
	slotLeast = 64 << 10
)

// Flights are one rank's transfers in pipes, with and without leases, in both directions. New makes them; Use comes before the first.
type Flights struct {
	n     *nic.NIC
	sched *sched.Sched
	peers *peers.Table
	first uint8 // the handler of the first Kind
	slot  int   // bytes; 0: the NIC may register too little for a workspace
	reg   *regmgr.Manager

	origin  *superpipe.Origin // nil: there is no workspace
	target  *superpipe.Target // nil: this rank has no slots to lease, and asks for none
	room    room
	unequal []atomic.Bool // by rank: its slots are not as long or as many as this rank's: no leases

	live    atomic.Int32 // len(flights), for who does not hold mu
	flying  atomic.Int32 // flights with a lease: acknowledgements are writes, of which a NIC reports nothing
	pulling atomic.Int32 // len(pulls)
	work    atomic.Bool  // there are notes to be sent

	gathers                  bool          // what is registered goes to a lease from where it lies
	copied, direct, gathered atomic.Uint64 // see Moved
	unready                  atomic.Uint64 // see Unready
	why                      atomic.Pointer[error]

	mu      sync.Mutex        // of what follows, and of the rendezvous of flights
	lkeys   map[uint64]uint64 // of exposed memory, by the key that peers name it by
	flights []flight
	pulls   []pull
	notes   []note
	noted   uint32 // the newest note's number
}

// Config is what Flights are made of.
type Config struct {
	NIC    *nic.NIC
	Sched  *sched.Sched
	Peers  *peers.Table
	Size   int              // ranks of the world
	First  uint8            // the handler of requests of the first Kind; those of the others follow
	Policy superpipe.Policy // which plan pipes follow
	Leases int              // how many transfers this rank takes in at once; 0: 4, negative: none
}

// New registers the workspace of this rank's pipes. That of leases is registered when the first is asked for.
func New(c Config) (*Flights, error) {
	s := &Flights{
		n: c.NIC, sched: c.Sched, peers: c.Peers, first: c.First, slot: slotFor(c.NIC.Caps.MaxPinned), unequal: make([]atomic.Bool, c.Size),
	}
	s.room.s = s
	s.gathers = gatherPays(s.n.Domain, s.n.Caps)
	if s.slot == 0 {
		return s, nil
	}
	var err error
	if s.origin, err = superpipe.NewOrigin(superpipe.Config{
		Kept: true, NIC: nic.Lane{N: s.n}, SlotBytes: s.slot, Fold: Fold, Slots: Slots, Policy: c.Policy, Copied: s.sched.ChargeCopy,
	}); err != nil {
		return nil, fmt.Errorf("%w; there would be none with less than %d bytes to register (PGAS_MAX_PINNED)", err, LeastPinned)
	}
	if c.Leases == 0 {
		c.Leases = MostLeases
	}
	if s.origin.Way() == superpipe.WayNone || !s.n.Caps.Sends || c.Leases < 0 {
		return s, nil
	}
	s.target, err = superpipe.NewTarget(superpipe.Config{
		NIC: shore{nic.Lane{N: s.n}, s}, Cookies: shoreCookies, SlotBytes: s.slot, Fold: Fold, Slots: Slots, Leases: c.Leases,
		Later: true, Kept: true, Copied: s.sched.ChargeCopy,
	})
	return s, err
}

// gatherPays reports whether what is registered goes to a lease sooner from where it lies than by copies beside the wire. Where flags tell of
// what has arrived, blocks from there go in gather lists, a few to an operation, and each operation costs its gap. Of a NIC that does not say
// what it costs that is believed, for the sake of the processor.
func gatherPays(d transport.Domain, c transport.Caps) bool {
	p, told := d.(transport.Priced)
	if !told || !c.InOrderData {
		return true
	}
	costs, list := p.Costs(), float64(max(1, c.MaxSGE/2)*superpipe.Block)
	copying := 0.0
	if costs.Copy != nil {
		copying = costs.Copy(SlotBytes, SlotBytes).Seconds() / SlotBytes
	}
	return costs.PerByte+(costs.Gap+costs.Post).Seconds()/list <= max(costs.PerByte, copying)
}

// slotFor is the size of a slot where a NIC may pin so much: less where that is little, and 0 where it would be too little. 0: it may
// pin all.
func slotFor(most int64) int {
	if most <= 0 {
		return SlotBytes
	}
	slot := min(SlotBytes, most/slotShare/Slots/superpipe.Block*superpipe.Block)
	if slot < slotLeast {
		return 0
	}
	return int(slot)
}

// LeastPinned is what a NIC must be allowed to pin so that there are pipes, bytes.
const LeastPinned = slotLeast * Slots * slotShare

// Way is how whoever takes in what is leased learns of it; superpipe.WayNone where there are no leases.
func (s *Flights) Way() superpipe.Way {
	if s.target == nil {
		return superpipe.WayNone
	}
	return s.origin.Way()
}

// Unready returns how often the workspace of leases could not be registered when somebody needed it, and why at first.
func (s *Flights) Unready() (times uint64, first error) {
	if e := s.why.Load(); e != nil {
		first = *e
	}
	return s.unready.Load(), first
}

// Use tells which registrations there are: what helps transfers, and the workspace of leases, are among them. buckets are others of them that
// peers use, or nil: when room is needed they and the workspace are given up by age.
func (s *Flights) Use(reg *regmgr.Manager, buckets regmgr.Victims) {
	s.reg, s.room.buckets = reg, buckets
	reg.Share(&s.room)
}

// Pipes reports whether there are pipes at all.
func (s *Flights) Pipes() bool { return s.origin != nil }

// Leases reports whether this rank leases its workspace, and asks others for leases.
func (s *Flights) Leases() bool { return s.target != nil }

// LeasesTo reports whether leases of a rank's workspace fit, as far as is known.
func (s *Flights) LeasesTo(rank int) bool { return s.target != nil && !s.unequal[rank].Load() }

// SlotBytes is the size of a slot; 0: there are none.
func (s *Flights) SlotBytes() int { return s.slot }

// Footprint is what pipes have registered, bytes.
func (s *Flights) Footprint() int {
	if s.origin == nil {
		return 0
	}
	return s.origin.Footprint()
}

// Workspace is what leases register when others first ask for them, bytes.
func (s *Flights) Workspace() int {
	if s.target == nil {
		return 0
	}
	return s.target.Footprint()
}

// Immediates is how many receive buffers the NIC needs beside those of messages.
func (s *Flights) Immediates() int {
	if s.target == nil {
		return 0
	}
	return s.target.Immediates()
}

// Calibrate has plans follow what was measured.
func (s *Flights) Calibrate(m superpipe.Model) {
	if s.origin != nil {
		s.origin.Calibrate(&m)
	}
}

// Watchful reports whether this rank must look for what the NIC does not report: data in sub-blocks, and acknowledgements.
func (s *Flights) Watchful() bool {
	return s.flying.Load() > 0 || s.target != nil && s.target.Active() > 0
}

// Arrived takes data that a peer has written into this rank's workspace; false: it is not that.
func (s *Flights) Arrived(c *transport.Completion) bool {
	return s.target != nil && s.target.Arrived(c)
}

// shoreCookies are those of a target's acknowledgements, among those of pieces that belong to pipes.
const shoreCookies = 1 << 41

// Reported says how an operation that flights have posted ended.
func (s *Flights) Reported(cookie uint64, err error) {
	if err != nil {
		err = fmt.Errorf("a chunk of a large transfer: %w", err)
	}
	if cookie&shoreCookies != 0 {
		s.target.Reported(cookie, err)
	} else {
		s.origin.Reported(cookie, err)
	}
}

// GaveUp ends what is under way with a rank: it is gone, as peers says, or cannot be reached. notes are the cookies of requests that will not be
// answered.
func (s *Flights) GaveUp(rank int, notes []uint64, err error) {
	switch {
	case s.origin == nil:
		return
	case s.peers.Check(rank) != nil:
		s.origin.Lost(rank, err)
		s.lost(rank)
	default:
		s.origin.Abort(rank, err)
	}
	for _, id := range notes {
		s.Answered(am.Reply{Cookie: id}, err)
	}
}

// Close ends all flights; the NIC is closed.
func (s *Flights) Close() {
	if s.origin != nil {
		s.origin.Close(nic.ErrOwnEnd)
	}
	if s.target != nil {
		s.target.Close()
	}
}

// Moved is how many bytes pipes that are over have carried: those that this rank has copied, those that its NIC took from or wrote to where they
// lie; and of the latter those of transfers through leases.
func (s *Flights) Moved() (copied, direct, gathered uint64) {
	return s.copied.Load(), s.direct.Load(), s.gathered.Load()
}

// Levels are what is under way and what is free, for who looks whether anything is left over.
type Levels struct {
	Flights, Pulls, Notes int
	Leased                int // flights with a lease, and leases of this rank's workspace
	Idle                  bool
	FreeSlots, FreeLeases int
	Pipes                 int   // that are not over
	Broken                int64 // leases whose data were not what was offered
}

// Levels returns what is under way now.
func (s *Flights) Levels() (v Levels) {
	s.mu.Lock()
	v.Flights, v.Pulls, v.Notes = len(s.flights), len(s.pulls), len(s.notes)
	s.mu.Unlock()
	if s.origin != nil {
		v.FreeSlots, v.Pipes = s.origin.FreeSlots(), s.origin.Live()
	}
	v.Leased = int(s.flying.Load())
	if s.target != nil {
		v.Leased += s.target.Active()
		v.Idle, v.FreeLeases, v.Broken = s.target.Idle(), s.target.FreeLeases(), s.target.Broken()
	}
	return v
}

// Trip is which way a flight goes: to another rank's memory, or from it.
type Trip struct {
	Op        string // for errors
	Get       bool
	Rank      int
	Addr, Key uint64 // where in its memory, and by what the NIC, or its CPU, may touch that
}

// Cargo is what one lease carries.
type Cargo struct {
	Near   mem.Range      // this rank's memory
	Spread *spread.Spread // the pieces of it; nil: all of it
	Span   int            // of the other's memory, bytes; as many as Near has, or those that all pieces lie in
	Layout []byte         // of the pieces there, from the Trip's address on; empty where there is no Spread
}
