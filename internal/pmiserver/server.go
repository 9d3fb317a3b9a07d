package pmiserver

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"gopgas/internal/pmi"
)

// MaxStore bounds the bytes of keys and values that all ranks together may put.
const MaxStore = 256 << 20

// Config describes the job to its ranks.
type Config struct {
	Size    int               // ranks
	KVSName string            // the job's name: visible characters, at most pmi.MaxKVSName-1 bytes
	Mapping string            // PMI_process_mapping; empty: all ranks on one node
	Preset  map[string]string // published before the start
	Linger  time.Duration     // how soon after its connection the process of a rank is expected to end, and Ended to be called

	// OnAbort is called when a rank asks for the end of the job; text is what it gave as the reason, or empty. It is
	// called by the goroutine that serves the rank, so it must not wait for that Serve. Nil: nothing.
	OnAbort func(rank, code int, text string)
}

// State says how far a rank has come.
type State uint8

// The states of a rank, in the order in which it goes through them; the last two end what it was in before it had left.
const (
	Silent    State = iota // has not said "init": perhaps not a PMI program at all
	Begun                  // between "init" and "finalize"
	Finalized              // has left in good order
	Garbled                // has said something that is not PMI-1, and is no longer listened to
	Broken                 // is no longer listened to because its connection failed, or it reads no answers
)

// Server holds the shared state of one job. Its methods may be called by any goroutine.
type Server struct {
	cfg Config

	mu     sync.Mutex // guards what follows
	kvs    map[string]string
	stored int
	ranks  []rank
	inside int // ranks in the barrier
}

type rank struct {
	state     State
	inBarrier bool
	gaveUp    bool          // it has left a barrier by itself, and uses the connection no more
	gone      string        // why it will never enter a barrier again; empty: it may
	ended     chan struct{} // closed by Ended
	reply     func(pmi.Message) error
}

// New checks c and returns a server without connections.
func New(c Config) (*Server, error) {
	if c.Size < 1 {
		return nil, fmt.Errorf("PMI server for %d ranks: wanted 1 or more", c.Size)
	}
	if c.KVSName == "" || len(c.KVSName) >= pmi.MaxKVSName || pmi.Word(c.KVSName, pmi.MaxKVSName) != c.KVSName {
		return nil, fmt.Errorf("PMI server: job name %q: wanted 1 to %d visible characters", c.KVSName, pmi.MaxKVSName-1)
	}
	if c.Mapping == "" {
		c.Mapping = OneNode(c.Size)
	}
	s := &Server{cfg: c, kvs: map[string]string{}, ranks: make([]rank, c.Size)}
	if pmi.CheckValue(c.Mapping) == nil { // one that is too long for a value is not there, as with other launchers: programs find their neighbours by name then
		s.kvs["PMI_process_mapping"] = c.Mapping
	}
	for i := range s.ranks {
		s.ranks[i].ended = make(chan struct{})
	}
	for k, v := range c.Preset {
		if err := errors.Join(pmi.CheckKey(k), pmi.CheckValue(v)); err != nil {
			return nil, fmt.Errorf("PMI server: preset: %w", err)
		}
		s.kvs[k] = v
	}
	s.cfg.Preset = make(map[string]string, len(s.kvs))
	maps.Copy(s.cfg.Preset, s.kvs)
	return s, nil
}

// OneNode is the process mapping of size ranks that share one node.
func OneNode(size int) string { return Mapping([]int{size}) }

// Mapping is the process mapping of a job whose ranks stand in blocks, one to a node: "(vector,(first node,nodes,ranks of each),...)".
func Mapping(blocks []int) string {
	var text strings.Builder
	text.WriteString("(vector")
	for at := 0; at < len(blocks); {
		n := 1
		for at+n < len(blocks) && blocks[at+n] == blocks[at] {
			n++
		}
		fmt.Fprintf(&text, ",(%d,%d,%d)", at, n, blocks[at])
		at += n
	}
	return text.String() + ")"
}

// State returns how far rank has come.
func (s *Server) State(rank int) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ranks[rank].state
}

// Gone says that rank has ended, and why in a few words. Ranks that wait for it in a barrier are told. Serve says so
// itself when a connection ends.
func (s *Server) Gone(rank int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.goneLocked(rank, why)
}

// Ended says that the process of rank has ended. Its launcher says Gone when it has judged that end: so the others hear
// of it, and end for that reason, after the launcher knows who was first.
func (s *Server) Ended(rank int) { close(s.ranks[rank].ended) }

// hungUp is Gone at the end of rank's connection, unless its process ends in these moments, which is for Gone to say (V4).
func (s *Server) hungUp(rank int, why string) {
	t := time.NewTimer(s.cfg.Linger)
	defer t.Stop()
	select {
	case <-s.ranks[rank].ended:
	case <-t.C:
		s.Gone(rank, why)
	}
}

func (s *Server) goneLocked(rank int, why string) {
	r := &s.ranks[rank]
	r.reply = nil
	if r.inBarrier { // V2: it entered, but nobody is there to be answered
		r.inBarrier = false
		s.inside--
	}
	if r.gone == "" {
		r.gone = why
	}
	s.settleBarrierLocked()
}

// settleBarrierLocked answers the barrier if it is complete or can never be.
func (s *Server) settleBarrierLocked() {
	if s.inside == 0 {
		return
	}
	out := pmi.Msg("barrier_out")
	if s.inside < len(s.ranks) {
		missing := -1
		for i := range s.ranks {
			if r := &s.ranks[i]; !r.inBarrier && r.gone != "" {
				missing = i
				break
			}
		}
		if missing < 0 {
			return
		}
		text := fmt.Sprintf("rank %d %s", missing, s.ranks[missing].gone)
		out = pmi.Msg("barrier_out", "rc", "-1", "msg", pmi.Word(text, pmi.PortableValue), "gone", strconv.Itoa(missing))
	}
	s.inside = 0
	for i := range s.ranks {
		if r := &s.ranks[i]; r.inBarrier {
			r.inBarrier = false
			_ = r.reply(out) // a rank that cannot be answered is found by its own Serve
		}
	}
}

// handle acts on one message and returns the answer, nil for none yet. An error ends the connection after the answer.
// reply is kept for the answer to a barrier, which another rank's arrival gives.
func (s *Server) handle(rank int, m pmi.Message, reply func(pmi.Message) error) (*pmi.Message, error) {
	if m.Cmd == "abort" {
		s.abort(rank, m)
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.ranks[rank]
	if m.Cmd == "barrier_missing" {
		return s.missingLocked(r)
	}
	if r.inBarrier {
		return nil, fmt.Errorf("it sent %q while it waits in a barrier", m.Cmd)
	}
	switch r.state {
	case Silent:
		if m.Cmd != "init" {
			return nil, fmt.Errorf("it sent %q before \"init\"", m.Cmd)
		}
	case Finalized:
		if m.Cmd == "init" {
			return nil, errors.New("it joins the job again after it has left it: one program of each rank may join, once; start the next by a launcher of its own")
		}
		return nil, fmt.Errorf("it sent %q after \"finalize\"", m.Cmd)
	}
	switch m.Cmd {
	case "init":
		return s.beginLocked(r, m)
	case "get_maxes":
		return say("maxes", "rc", "0", "kvsname_max", strconv.Itoa(pmi.MaxKVSName),
			"keylen_max", strconv.Itoa(pmi.MaxKey), "vallen_max", strconv.Itoa(pmi.MaxValue))
	case "get_my_kvsname":
		return say("my_kvsname", "rc", "0", "kvsname", s.cfg.KVSName)
	case "get_universe_size":
		return say("universe_size", "rc", "0", "size", strconv.Itoa(s.cfg.Size))
	case "get_appnum":
		return say("appnum", "rc", "0", "appnum", "0")
	case "put":
		return s.putLocked(m)
	case "get":
		return s.getLocked(m)
	case "barrier_in":
		r.inBarrier, r.reply = true, reply
		s.inside++
		s.settleBarrierLocked()
		return nil, nil
	case "finalize":
		r.state = Finalized
		s.goneLocked(rank, "has finalized")
		return say("finalize_ack", "rc", "0")
	case "publish_name", "unpublish_name", "lookup_name":
		answer := strings.TrimSuffix(m.Cmd, "_name") + "_result"
		return say(answer, "rc", "-1", "info", "fail", "msg", "this_launcher_has_no_name_service")
	}
	return nil, fmt.Errorf("unknown command %q", m.Cmd)
}

// missingLocked takes a rank out of the barrier that it gives up, and says who has not come. One whose barrier was answered
// meanwhile hears nothing more.
func (s *Server) missingLocked(r *rank) (*pmi.Message, error) {
	if !r.inBarrier {
		return nil, nil
	}
	var out []int
	for i := range s.ranks {
		if o := &s.ranks[i]; !o.inBarrier && !o.gaveUp {
			out = append(out, i)
		}
	}
	r.inBarrier, r.gaveUp = false, true
	s.inside--
	return say("barrier_out", "rc", "-1", "msg", pmi.Word(missingText(out), pmi.PortableValue), "missing", strconv.Itoa(len(out)))
}

// mostNamed is how many missing ranks are named; of more their number says enough.
const mostNamed = 10

// missingText says in a sentence which ranks have not come.
func missingText(ranks []int) string {
	var names []string
	for _, r := range ranks[:min(len(ranks), mostNamed)] {
		names = append(names, strconv.Itoa(r))
	}
	text := strings.Join(names, ", ")
	switch more := len(ranks) - len(names); {
	case len(ranks) == 0:
		return "all others have given up too"
	case len(ranks) == 1:
		return "rank " + text + " has not come"
	case more > 0:
		text += fmt.Sprintf(" and %d more", more)
	}
	return "ranks " + text + " have not come"
}

func (s *Server) abort(rank int, m pmi.Message) {
	code, err := m.Int("exitcode")
	if err != nil {
		code = 1 // the wish is clear even where the number is not
	}
	text, _ := m.Get("msg")
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	if s.cfg.OnAbort != nil { // before the others are told, and end for that reason
		s.cfg.OnAbort(rank, code, text)
	}
	s.Gone(rank, fmt.Sprintf("aborted the job with code %d", code))
}

func (s *Server) beginLocked(r *rank, m pmi.Message) (*pmi.Message, error) {
	v, err := m.Int("pmi_version")
	if err != nil {
		return nil, err
	}
	answer := []string{"pmi_version", "1", "pmi_subversion", "1", "rc"}
	switch {
	case r.state != Silent:
		return nil, errors.New(`it sent "init" twice`)
	case v != 1:
		no := pmi.Msg("response_to_init", append(answer, "-1")...)
		return &no, fmt.Errorf("it speaks PMI version %d, this launcher speaks PMI-1 only", v)
	}
	r.state = Begun
	return say("response_to_init", append(answer, "0")...)
}

func (s *Server) putLocked(m pmi.Message) (*pmi.Message, error) {
	key, err := s.keyLocked(m)
	if err != nil {
		return nil, err
	}
	value, _ := m.Get("value")
	if err := pmi.CheckValue(value); err != nil {
		return nil, fmt.Errorf("put %s: %w", key, err)
	}
	if _, fixed := s.cfg.Preset[key]; fixed {
		return say("put_result", "rc", "-1", "msg", "key_belongs_to_the_launcher")
	}
	if s.stored+len(key)+len(value) > MaxStore {
		return say("put_result", "rc", "-1", "msg", "key-value_space_is_full")
	}
	s.stored += len(key) + len(value)
	s.kvs[key] = value
	return say("put_result", "rc", "0", "msg", "success")
}

func (s *Server) getLocked(m pmi.Message) (*pmi.Message, error) {
	key, err := s.keyLocked(m)
	if err != nil {
		return nil, err
	}
	value, ok := s.kvs[key]
	if !ok {
		return say("get_result", "rc", "-1", "msg", "key_not_found", "value", "unknown")
	}
	return say("get_result", "rc", "0", "msg", "success", "value", value)
}

// say is an answer.
func say(cmd string, namesAndValues ...string) (*pmi.Message, error) {
	m := pmi.Msg(cmd, namesAndValues...)
	return &m, nil
}

// keyLocked returns the message's key after a check of key and key-value space.
func (s *Server) keyLocked(m pmi.Message) (string, error) {
	if name, _ := m.Get("kvsname"); name != s.cfg.KVSName {
		return "", fmt.Errorf("%s names the key-value space %q, the job's is %q", m.Cmd, name, s.cfg.KVSName)
	}
	key, _ := m.Get("key")
	return key, pmi.CheckKey(key)
}
