package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// EnvFD names the rank's end of the channel.
const EnvFD = "PGAS_CONTROL_FD"

// MaxLine is the longest line, with its newline. It fits into a socket's buffer several times.
const MaxLine = 48 << 10

// Sentinels; match with errors.Is.
var (
	// ErrMalformed: what arrived is not a line of this channel.
	ErrMalformed = errors.New("malformed control message")
	// ErrNotListening: the other end does not read; nothing was sent.
	ErrNotListening = errors.New("the other end of the control channel does not listen")
)

// Wait is one call of a rank that has not returned yet.
type Wait struct {
	Op     string        `json:"op"`               // in the API's words: "barrier", "lock"
	Peer   int           `json:"peer"`             // the rank it waits for; -1: all, or none in particular; -2: whoever ends it
	Since  time.Duration `json:"since"`            // how long already
	Where  string        `json:"where,omitempty"`  // file:line of the user's call
	Detail string        `json:"detail,omitempty"` // anything else a person may need
}

// Path is what one way of moving data has done.
type Path struct {
	Ops   uint64 `json:"ops"`
	Bytes uint64 `json:"bytes"`
	Waits uint64 `json:"waits"` // how often a call had to wait for room
}

// Stats is what a rank has counted since its start.
type Stats struct {
	Rank       int                        `json:"rank"`
	Node       string                     `json:"node"`
	Transports map[string]map[string]Path `json:"transports"` // transport as PGAS_TRANSPORT names it, then path: "mapped", "bounce", "inline"
	Extra      map[string]float64         `json:"extra,omitempty"`
}

// Sample is a rank as it is now, for those who look on while the job runs. Counters are totals since its start.
type Sample struct {
	Node       string                     `json:"node"`
	Waits      []Wait                     `json:"waits,omitempty"`      // the longest first; at most MostWaits
	Transports map[string]map[string]Path `json:"transports,omitempty"` // as in Stats
	Flows      []Flow                     `json:"flows,omitempty"`      // those that have changed since the sample before; at most MostFlows
	Extra      map[string]float64         `json:"extra,omitempty"`      // as in Stats; levels and totals
}

// Flow is what a rank has moved to and from one other by one transport.
type Flow struct {
	With  int    `json:"with"`
	Via   string `json:"via"`
	Ops   uint64 `json:"ops"`
	Bytes uint64 `json:"bytes"`
}

// What a sample may hold, so that it fits into a line (C5).
const (
	MostWaits = 32
	MostFlows = 256
)

// kind says what a line is.
type kind string

const (
	askWaits kind = "ask-waits" // launcher: ID
	askStats kind = "ask-stats" // launcher: ID
	askNow   kind = "ask-now"   // launcher: ID
	gone     kind = "gone"      // launcher: Rank, Why
	waits    kind = "waits"     // rank: ID, Waits
	stats    kind = "stats"     // rank: ID (0: unasked), Stats
	now      kind = "now"       // rank: ID, Sample
)

// line is every message of the channel; which fields count depends on Kind.
type line struct {
	Kind   kind    `json:"kind"`
	ID     uint64  `json:"id,omitempty"`
	Rank   int     `json:"rank,omitempty"`
	Why    string  `json:"why,omitempty"`
	Waits  []Wait  `json:"waits,omitempty"`
	Stats  *Stats  `json:"stats,omitempty"`
	Sample *Sample `json:"sample,omitempty"`
}

// encode makes a line that fits (C4).
func encode(l line) ([]byte, error) {
	for {
		b, err := json.Marshal(l)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", l.Kind, err)
		}
		if len(b) < MaxLine {
			return append(b, '\n'), nil
		}
		if s := l.Sample; s != nil && len(s.Waits) > 0 {
			cut := *s
			cut.Waits = s.Waits[:len(s.Waits)/2]
			l.Sample = &cut
			continue
		}
		if len(l.Waits) == 0 {
			return nil, fmt.Errorf("encode %s: %d bytes, the limit is %d", l.Kind, len(b), MaxLine-1)
		}
		l.Waits = l.Waits[:len(l.Waits)/2]
	}
}

func decode(b []byte) (line, error) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return line{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return l, nil
}

// lines calls each for every line until the other end closes, which is no error, or one is broken.
func lines(conn net.Conn, each func(line) error) error {
	rd := bufio.NewReaderSize(conn, MaxLine)
	for {
		b, err := rd.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%w: no newline within %d bytes", ErrMalformed, MaxLine)
		case errors.Is(err, io.EOF) && len(b) > 0:
			return fmt.Errorf("%w: the channel ended within a line", ErrMalformed)
		case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.ErrClosedPipe):
			return nil
		case err != nil:
			return err
		}
		l, err := decode(b)
		if err != nil {
			return err
		}
		if err := each(l); err != nil {
			return err
		}
	}
}

// send writes a line if it fits into the socket's buffer now, and closes the channel if it does not (C1).
func send(conn net.Conn, l line) error {
	b, err := encode(l)
	if err != nil {
		return err
	}
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return fmt.Errorf("control channel over %T, wanted a socket", conn)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	var n int
	var werr error
	err = raw.Write(func(fd uintptr) bool {
		for {
			n, werr = syscall.Write(int(fd), b)
			if werr != syscall.EINTR {
				return true // one try: never wait for room
			}
		}
	})
	if err = errors.Join(err, werr); err == nil && n == len(b) {
		return nil
	}
	conn.Close()
	if err == nil || errors.Is(err, syscall.EAGAIN) {
		err = ErrNotListening
	}
	return fmt.Errorf("send %s: %w", l.Kind, err)
}
