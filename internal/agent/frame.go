package agent

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"gopgas/internal/crew"
)

// Protocol is the number of this wire format. It stands in the greeting.
const Protocol = 3

// Sizes of frames.
const (
	HeaderBytes = 12
	MaxData     = 32 << 10 // of a data frame
	MaxNote     = 8 << 20  // of a note: an environment and an argument list have room
	Window      = 128 << 10
)

// kind says what a frame is.
type kind uint8

const (
	data   kind = 1 + iota // bytes of a channel
	credit                 // that many bytes of a channel have been taken out: so many more may be sent
	end                    // the sender will send no more on this channel
	shut                   // the sender takes no more from this channel
	remark                 // a note, in JSON; its channel is 0
)

// ErrMalformed: what arrived is not a frame, or not one that may come now. Match with errors.Is.
var ErrMalformed = errors.New("malformed frame between launcher and agent")

// frame is what travels. The payload of one that was read is good until the next read.
type frame struct {
	kind    kind
	channel uint32
	payload []byte
}

// append encodes f. The newline at its end is for carriers that hand on whole lines only, as srun does.
func (f frame) append(b []byte) []byte {
	b = append(b, byte(f.kind), 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, f.channel)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.payload)))
	b = append(b, f.payload...)
	return append(b, '\n')
}

// limit is the longest payload of a kind; 0: there is no such kind.
func (k kind) limit() (least, most int) {
	switch k {
	case data:
		return 1, MaxData
	case credit:
		return 4, 4
	case remark:
		return 2, MaxNote
	}
	return 0, 0
}

// reader reads frames.
type reader struct {
	from *bufio.Reader
	buf  []byte
}

// next returns the next frame. io.EOF means that the stream ended between two frames.
func (r *reader) next() (frame, error) {
	var head [HeaderBytes]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: kind(head[0]), channel: binary.LittleEndian.Uint32(head[4:])}
	n := binary.LittleEndian.Uint32(head[8:])
	least, most := f.kind.limit()
	if f.kind < data || f.kind > remark || head[1]|head[2]|head[3] != 0 || n < uint32(least) || n > uint32(most) {
		return frame{}, fmt.Errorf("%w: it begins with % x", ErrMalformed, head)
	}
	for want := int(n) + 1; len(r.buf) < want; { // grown as bytes come, not as a header claims
		r.buf = append(r.buf[:len(r.buf)], make([]byte, min(want-len(r.buf), max(len(r.buf), MaxData+1)))...)
	}
	if _, err := io.ReadFull(r.from, r.buf[:n+1]); err != nil {
		return frame{}, fmt.Errorf("%w: the stream ended within a frame", io.ErrUnexpectedEOF)
	}
	if r.buf[n] != '\n' {
		return frame{}, fmt.Errorf("%w: %d bytes end with %q instead of a newline", ErrMalformed, n, r.buf[n])
	}
	f.payload = r.buf[:n]
	return f, nil
}

// deed is what a note asks for or tells.
type deed string

const (
	start   deed = "start"   // launcher: Plan, Stdin, Ship
	signal  deed = "signal"  // launcher: Rank (-1: all), Signal; to the whole group
	stacks  deed = "stacks"  // launcher: Rank
	look    deed = "look"    // launcher: Rank, ID
	clock   deed = "clock"   // launcher: ID; agent: ID, Clock
	collect deed = "collect" // launcher: send what the ranks left in the plan's Folder
	finish  deed = "finish"  // launcher: kill what is left, and end
	started deed = "started" // agent: PIDs, Bound
	refused deed = "refused" // agent: Text, Fault; it ends
	ended   deed = "ended"   // agent: Rank, End
	seen    deed = "seen"    // agent: Rank, ID, Look
	reaped  deed = "reaped"  // agent: Usage; it ends
)

// note is every message of the stream that is no data; which fields count depends on Do. Ranks are counted from the host's first.
type note struct {
	Do     deed         `json:"do"`
	Rank   int          `json:"rank,omitempty"`
	ID     uint64       `json:"id,omitempty"`
	Plan   *crew.Plan   `json:"plan,omitempty"`
	Stdin  []int        `json:"stdin,omitempty"` // the ranks whose standard input comes through their channel
	Ship   bool         `json:"ship,omitempty"`  // the program comes through channel 0
	Signal int          `json:"signal,omitempty"`
	PIDs   []int        `json:"pids,omitempty"`
	Bound  []string     `json:"bound,omitempty"`
	Text   string       `json:"text,omitempty"`
	Fault  string       `json:"fault,omitempty"`
	End    *crew.End    `json:"end,omitempty"`
	Look   *crew.Look   `json:"look,omitempty"`
	Usage  []crew.Usage `json:"usage,omitempty"`
	Clock  int64        `json:"clock,omitempty"`
}

// parseNote decodes a note and checks what every reader relies on.
func parseNote(b []byte) (n note, err error) {
	if err := json.Unmarshal(b, &n); err != nil {
		return note{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	missing := false
	switch n.Do {
	case start:
		missing = n.Plan == nil || n.Plan.Count < 1 || n.Plan.First < 0 || n.Plan.Size < n.Plan.First+n.Plan.Count || len(n.Plan.Argv) == 0
	case ended:
		missing = n.End == nil
	case seen:
		missing = n.Look == nil
	case signal, stacks, look, clock, collect, finish, started, refused, reaped:
	default:
		return note{}, fmt.Errorf("%w: a note says %.40q", ErrMalformed, n.Do)
	}
	if missing {
		return note{}, fmt.Errorf("%w: a note of %q without what belongs to it", ErrMalformed, n.Do)
	}
	return n, nil
}

// Channels. Those of the host's rank i are channelsPerRank*i plus one of these.
const (
	program = iota // of the whole host: the program, where it is shipped, and back what ranks left
	stdin
	stdout
	stderr
	pmiTalk
	controlTalk

	channelsPerRank = 5
)

func channelOf(rank, which int) uint32 { return uint32(channelsPerRank*rank + which) }
