package ibv

// Batch is the most that Post, PostRecv and Poll take in one crossing.
const Batch = 64

// Limits is what a device can hold.
type Limits struct {
	MaxRegionBytes uint64
	Vendor         uint32
	MaxPairs       uint32
	MaxSends       uint32 // work requests of one queue pair
	MaxSGE         uint32
	MaxCQE         uint32
	MaxRegions     uint32
	MaxRecvs       uint32 // of a shared receive queue; 0: there are none
	MaxRecvSGE     uint32
	MaxReads       uint32 // reads and atomics a queue pair answers at once
	MaxInitReads   uint32 // and starts at once
	Atomics        uint32 // 0: none
	Ports          uint32
	Firmware       [64]byte
}

// Port is the state of one port.
type Port struct {
	State      uint32 // PortActive and others
	MTU        uint32 // 1 for 256 bytes, up to 5 for 4096
	MaxMessage uint32
	GIDs       uint32
	PKeys      uint32
	LID        uint32
	LinkLayer  uint32 // LinkInfiniBand or LinkEthernet
	MaxMTU     uint32
}

// PortActive is Port.State of a port with a link.
const PortActive = 4

// Link layers of a port.
const (
	LinkInfiniBand = 1
	LinkEthernet   = 2
)

// GID is an entry of a device's address tables.
type GID struct {
	Raw    [16]byte
	Index  uint32
	Port   uint32
	Type   uint32 // GIDInfiniBand, GIDRoCE1, GIDRoCE2
	NetDev uint32
}

// Types of a GID.
const (
	GIDInfiniBand = 0
	GIDRoCE1      = 1
	GIDRoCE2      = 2
)

// NIC holds the handles of what a domain has one of. Before Setup, CQE, Recvs and RecvSGE say what is wanted;
// after it, what was granted.
type NIC struct {
	Context, PD, Channel, CQ, SRQ uint64
	ChannelFD, AsyncFD            int32
	CQE, Recvs, RecvSGE           uint32
	_                             uint32
}

// QP is a queue pair: wanted sizes, then the handle, the number and the granted sizes.
type QP struct {
	Handle uint64
	Number uint32
	Sends  uint32
	SGE    uint32
	Inline uint32
}

// Path says how a queue pair reaches its other end.
type Path struct {
	GID          [16]byte
	RemoteNumber uint32
	RemotePSN    uint32
	LocalPSN     uint32
	MTU          uint32
	RemoteLID    uint32
	Port         uint8
	GIDIndex     uint8
	Global       uint8 // 1: by GID, as always over Ethernet
	Reads        uint8 // reads and atomics started at once
	DestReads    uint8 // and answered at once
	Timeout      uint8 // 4.096 us * 2^Timeout until a packet is sent again
	Retries      uint8 // 7 would be for ever on some devices
	RNRRetries   uint8 // for a receiver without a buffer; 7: for ever
	RNRTimer     uint8
	Service      uint8
	PKeyIndex    uint16
}

// Region is a registration.
type Region struct {
	Handle     uint64
	LKey, RKey uint32
}

// SGE is one piece of local memory.
type SGE struct {
	Addr  uint64
	Bytes uint32
	LKey  uint32
}

// Send is one operation to post.
type Send struct {
	QP    uint64
	ID    uint64
	RAddr uint64
	Arg0  uint64
	Arg1  uint64
	RKey  uint32
	Imm   uint32
	Error int32 // set by Post: 0, or the error number of one that was refused
	Op    uint8
	Flags uint8
	NSGE  uint8
	_     uint8
	SGE   [4]SGE
}

// Operations of a Send.
const (
	OpWrite       = 0
	OpWriteImm    = 1
	OpSendImm     = 3
	OpRead        = 4
	OpCompareSwap = 5
	OpFetchAdd    = 6
)

// Flags of a Send.
const (
	FlagFence     = 1 << 0
	FlagSignaled  = 1 << 1
	FlagSolicited = 1 << 2
	FlagInline    = 1 << 3
)

// Rights of a Region.
const (
	LocalWrite   = 1 << 0
	RemoteWrite  = 1 << 1
	RemoteRead   = 1 << 2
	RemoteAtomic = 1 << 3
)

// Recv is one receive buffer.
type Recv struct {
	ID  uint64
	SGE SGE
}

// Done is one completion. Only ID, Status, Vendor and QPNumber are valid where Status is not StatusOK.
type Done struct {
	ID       uint64
	Status   uint32
	Op       uint32
	Vendor   uint32
	Bytes    uint32
	Imm      uint32
	QPNumber uint32
}

// OpRecvBit is set in Done.Op of a completed receive.
const OpRecvBit = 1 << 7

// Event is something that happened to the device, a port or an object.
type Event struct {
	Object uint64 // a handle, or a port's number
	Type   uint32
	_      uint32
}
