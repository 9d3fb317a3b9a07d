package transport

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
)

// Provider opens domains. Open returns an error wrapping ErrUnsupported where this machine lacks what the
// provider needs; the error's text says what.
type Provider interface {
	// Name is the name that PGAS_TRANSPORT uses: "shm", "verbs", "tcp", "soft", "sim", "loopback".
	Name() string
	Open(ctx context.Context, c Config) (Domain, error)
}

// Config tells a provider who it works for.
type Config struct {
	Rank, Size int    // this rank in the job, and how many there are
	Job        string // the job's name, equal on all its ranks
	Secret     []byte // shared by the job's ranks and by nobody else
	Device     string // which device and port, in the provider's own words; empty: the first usable

	Sched *sched.Sched // how this rank waits and starts helpers

	// Lives says whether the process of a rank lives, as far as the launcher, the other ranks or the kernel of a common machine have
	// told; nil: nobody tells. A rank that takes no connection is called gone at once where it is known to have ended, and where
	// nothing is known; where it lives, after the failure timeout. It may be called concurrently, after a failure, and does not wait.
	Lives func(rank int) (lives, known bool)
}

// Receives is for how many receive buffers a NIC has room where nobody says: eight for the messages of each rank of the job, or fewer where there are
// many ranks, one at least, and some for what a rank asks for itself.
func (c Config) Receives() int {
	const few = 1024
	return max(few, min(8*c.Size, max(few, c.Size))+128)
}

// Domain is one NIC in use by one rank.
type Domain interface {
	// Caps says what this NIC can do. It never changes while the domain is open.
	Caps() Caps
	// Address is what a peer's Connect needs, as wire data.
	Address() []byte
	// Connect returns the endpoint of rank peer, which published addr. The provider serves the passive side
	// itself, and two simultaneous connects between the same ranks meet in one connection. Connecting to one's
	// own rank is allowed.
	Connect(ctx context.Context, peer int, addr []byte) (EP, error)
	// Disconnect ends ep. Its outstanding operations complete as flushed; connecting again raises the incarnation.
	Disconnect(ep EP) error
	// Register makes r reachable. The memory must stay mapped until Deregister.
	Register(r mem.Range, a Access) (Region, error)
	// Deregister ends a registration. The caller has nothing in flight on it; a peer's later use of its RKey
	// fails with StatusRemoteAccess.
	Deregister(Region) error
	// Post hands ops to the NIC and returns how many it took. A short count with a nil error is back-pressure:
	// poll, then post the rest. With an error, ops[n] is the one that was refused and nothing of it happened.
	Post(ops []Op) (n int, err error)
	// PostRecv adds receive buffers to the shared receive queue.
	PostRecv(bufs []Recv) (n int, err error)
	// Poll takes up to len(cq) completions and never blocks.
	Poll(cq []Completion) (n int, err error)
	// Wait returns when there may be a completion to poll, after Wake, or with ctx's error. One goroutine waits at a time.
	Wait(ctx context.Context) error
	// Wake makes the current or next Wait return.
	Wake()
	// Close releases everything. Outstanding operations are abandoned without completions.
	Close() error
}

// Access says who may do what with registered memory.
type Access uint8

// Rights of a registration. Local reading is always allowed.
const (
	LocalWrite Access = 1 << iota
	RemoteRead
	RemoteWrite
	RemoteAtomic
	AllAccess = LocalWrite | RemoteRead | RemoteWrite | RemoteAtomic
)

// Region is registered memory. LKey goes into SGEs of this rank, RKey to the peers.
type Region struct {
	ID         uint64
	LKey, RKey uint64
}

// Caps describes what a NIC can do and what it promises.
type Caps struct {
	MaxInline  int   // largest inline payload, bytes
	MaxSGE     int   // entries of one gather list, at most len(Op{}.SGE)
	MaxMessage int   // largest single operation, bytes
	MaxRegions int   // registrations at once; 0: no limit known
	MaxPinned  int64 // bytes registered at once; 0: no limit known
	MaxPost    int   // operations in flight on one endpoint before Post is short

	Atomics64     bool // OpFetchAdd and OpCompareSwap exist
	AtomicsCPU    bool // these atomics are atomic with the CPU's on the same word
	OrderedWrites bool // writes on one endpoint become visible in the order posted
	InOrderData   bool // within one write, a later byte is never seen before an earlier one
	FlushByRead   bool // a write's completion means only "sent": flush by a read from the same endpoint
	Sends         bool // OpSend and PostRecv exist
	WriteImm      bool // OpWriteImm exists
	Busy          bool // threads of this process move the data: a core is theirs while transfers go on
}

// EP is a connected peer: Index is its rank in the job. Incarnation grows with each reconnection, so that a late
// completion is not taken for one of the new connection.
type EP struct{ Index, Incarnation uint32 }

// Kind is what an operation does.
type Kind uint8

// The operations. RAddr and RKey name the target's memory; SGE lists this rank's.
const (
	OpWrite       Kind = iota + 1 // SGE list to RAddr
	OpRead                        // RAddr to SGE list
	OpWriteImm                    // OpWrite, then a receive completion carrying Imm at the target
	OpSend                        // SGE list into the target's next receive buffer
	OpFetchAdd                    // *RAddr += Arg0; old value to SGE[0]
	OpCompareSwap                 // if *RAddr == Arg0 { *RAddr = Arg1 }; old value to SGE[0]
	OpRecv                        // completion only: a message or an immediate arrived
	OpPeerDown                    // completion only: the peer of EP is gone
	OpPortDown                    // completion only: this NIC's port has no link
)

// Flags of an operation.
const (
	FlagSignaled uint8 = 1 << iota // report success too
	FlagInline                     // copy the payload now; LKey is not looked at
	FlagFence                      // start only when earlier reads and atomics on the endpoint are done
	FlagLazy                       // report success late where that spares the target an answer: see "Rules of detail"
)

// SGE is one piece of this rank's memory.
type SGE struct {
	Mem  mem.Range
	LKey uint64
}

// Op is one operation, flat so that a batch crosses into C as it is.
type Op struct {
	Kind  Kind
	Flags uint8
	NSGE  uint8
	EP    EP
	Imm   uint32 // carried to the receiver by OpWriteImm and OpSend
	SGE   [4]SGE
	RAddr uint64
	RKey  uint64

	Cookie     uint64 // comes back in the completion
	Arg0, Arg1 uint64 // operands of atomics
}

// Recv is one receive buffer.
type Recv struct {
	Buf    SGE
	Cookie uint64
}

// Status says how an operation ended.
type Status uint8

// How an operation can end.
const (
	StatusOK           Status = iota
	StatusFlushed             // the endpoint was already broken or disconnected; nothing happened
	StatusInDoubt             // an atomic whose effect at the target is unknown
	StatusRemoteAccess        // the target refused: key, bounds or rights
	StatusLocalAccess         // this rank's SGE is not covered by its LKey
	StatusPeerGone            // no answer from the peer within the failure timeout
	StatusTooLong             // a message larger than the receive buffer
)

// Completion reports one finished operation.
type Completion struct {
	Cookie uint64
	EP     EP
	Kind   Kind
	Status Status
	Bytes  uint32
	Imm    uint32
}

// Token names exported memory on the wire, for Mapper.Map in another rank.
type Token []byte

// Mapper lets ranks that share a node map each other's memory. It makes the memory itself, because what was
// not made to be shared cannot be shared afterwards. All methods may be called concurrently; none waits for
// another rank.
type Mapper interface {
	// Name is "shm" between processes and between the goroutine ranks of one process alike.
	Name() string
	// Alloc returns bytes of zeroed, page-aligned memory of this rank and the token by which peers map it. It
	// fails with a *LimitError before anything is taken where the machine cannot hold that much.
	Alloc(bytes int) (mem.Range, Token, error)
	// Free gives back what Alloc returned. Mappings that peers still hold stay valid until they Unmap.
	Free(mem.Range) error
	// Map maps a peer's memory. An error wrapping ErrUnsupported says that this peer cannot be mapped from here.
	Map(Token) (mem.Range, error)
	// Unmap gives back what Map returned.
	Unmap(mem.Range) error
	// Close gives back everything that was not given back before.
	Close() error
}
