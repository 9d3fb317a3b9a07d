package ibv

// Statuses of a Done, in the words of the InfiniBand specification.
const (
	StatusOK          = 0
	StatusLocLen      = 1
	StatusLocQPOp     = 2
	StatusLocProt     = 4
	StatusFlush       = 5
	StatusLocAccess   = 8
	StatusRemInvReq   = 9
	StatusRemAccess   = 10
	StatusRemOp       = 11
	StatusRetryExc    = 12
	StatusRNRRetryExc = 13
	StatusRespTimeout = 20
)

// Types of an Event.
const (
	EventCQErr       = 0
	EventQPFatal     = 1
	EventQPReqErr    = 2
	EventQPAccessErr = 3
	EventDevFatal    = 8
	EventPortActive  = 9
	EventPortErr     = 10
	EventSRQErr      = 14
)
