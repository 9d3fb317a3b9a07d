package transporttest

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// sabotageVariable makes TestSabotaged run the suite against a NIC with one fault, in a process of its own.
const sabotageVariable = "TRANSPORTTEST_SABOTAGE"

// sabotages are NICs with one fault each: where the suite must find it, and how the fault is made.
var sabotages = map[string]struct {
	tests string // the part of the suite that has it
	found string // the test that must fail
	spoil func(s *saboteur)
}{
	"loses a completion":        {"T1", "T1/batches", func(s *saboteur) { s.completion = every(97, func(*transport.Completion) int { return 0 }) }},
	"reports twice":             {"T1", "T1/batches", func(s *saboteur) { s.completion = every(97, func(*transport.Completion) int { return 2 }) }},
	"reports another cookie":    {"Post", "write_sizes", func(s *saboteur) { s.completion = each(func(c *transport.Completion) { c.Cookie &= 1<<32 - 1 }) }},
	"reports silent successes":  {"T4", "T4/unsignalled", func(s *saboteur) { s.op = eachOp(func(op *transport.Op) { op.Flags |= transport.FlagSignaled }) }},
	"swaps neighbours":          {"T2", "T2/a_completion_implies", func(s *saboteur) { s.batch = swapNeighbours }},
	"ignores fences and order":  {"T2", "T2/fence", func(s *saboteur) { s.batch = swapNeighbours }},
	"reads inline sources late": {"T7", "T7/inline", func(s *saboteur) { s.late = true }},
	"flushes in silence":        {"T3", "T3/everything", func(s *saboteur) { s.completion = dropFlushed }},
	"calls an error a success": {"T5", "T5/keys", func(s *saboteur) {
		s.completion = each(func(c *transport.Completion) { c.Status = transport.StatusOK })
	}},
	"gives every right":           {"T5", "T5/keys", func(s *saboteur) { s.access = transport.AllAccess }},
	"registers whole pages":       {"T5", "T5/keys", func(s *saboteur) { s.widen = true }},
	"keeps keys":                  {"T5", "T5/revoked", func(s *saboteur) { s.keep = true }},
	"aligns atomics":              {"Post", "Post/refused", func(s *saboteur) { s.op = eachOp(alignAtomic) }},
	"adds twice":                  {"Post", "atomics_are_exact", func(s *saboteur) { s.batch = addTwice }},
	"takes without bound":         {"T4", "T4/post_without", func(s *saboteur) { s.unbounded = true }},
	"hides a death":               {"PeerDown", "PeerDown/idle", func(s *saboteur) { s.completion = dropDown }},
	"takes old endpoints for new": {"Disconnect", "Disconnect/an_older", func(s *saboteur) { s.op = eachOp(s.renew) }},
	"does not wake":               {"Wait", "Wait/Wake", func(s *saboteur) { s.deaf = true }},
	"loses the immediate":         {"PostRecv", "write_with_immediate", func(s *saboteur) { s.completion = each(func(c *transport.Completion) { c.Imm = 0 }) }},
	"sends one byte less":         {"Post", "write_sizes", func(s *saboteur) { s.op = eachOp(shorten) }},
	"forgets the end of a list":   {"Post", "gather_and_scatter", func(s *saboteur) { s.op = eachOp(func(op *transport.Op) { op.NSGE = min(op.NSGE, 1) }) }},
	"leaves a goroutine":          {"Poll", "Poll/few", func(s *saboteur) { s.leak = true }},
	"completes before it is done": {"Random", "Random", func(s *saboteur) { s.early = true }},
	"lands a flag first":          {"InOrderData", "blocks_and_their_flags", func(s *saboteur) { s.batch, s.apart = flagFirst, 20*time.Microsecond }},
}

// saboteur wraps a domain and spoils what passes.
type saboteur struct {
	transport.Domain
	op                                              func(op *transport.Op)
	batch                                           func([]transport.Op) []transport.Op
	completion                                      func(c *transport.Completion) (times int)
	access                                          transport.Access
	widen, keep, late, deaf, leak, early, unbounded bool
	apart                                           time.Duration // between operations that are posted together: a busy machine's reader looks seldom

	mu      sync.Mutex
	eps     map[uint32]transport.EP
	waiting []transport.Op         // late, unbounded: not posted yet
	ready   []transport.Completion // not reported yet
	n       int
}

func each(f func(c *transport.Completion)) func(*transport.Completion) int {
	return func(c *transport.Completion) int { f(c); return 1 }
}

func eachOp(f func(op *transport.Op)) func(*transport.Op) { return f }

// every applies f to one of n completions.
func every(n int, f func(*transport.Completion) int) func(*transport.Completion) int {
	seen := 0
	return func(c *transport.Completion) int {
		if seen++; seen%n == 0 {
			return f(c)
		}
		return 1
	}
}

func swapNeighbours(ops []transport.Op) []transport.Op {
	for i := 0; i+1 < len(ops); i += 2 {
		ops[i], ops[i+1] = ops[i+1], ops[i]
	}
	return ops
}

func addTwice(ops []transport.Op) (out []transport.Op) {
	for _, op := range ops {
		if op.Kind == transport.OpFetchAdd && op.Cookie%64 == 0 {
			out = append(out, quiet(op))
		}
		out = append(out, op)
	}
	return out
}

// flagFirst has the last word of a block arrive before what the write begins with.
func flagFirst(ops []transport.Op) (out []transport.Op) {
	for _, op := range ops {
		if at := int(^op.RAddr&(gridBlock-1)) - 7; op.Kind == transport.OpWrite && op.NSGE == 1 && op.SGE[0].Mem.Bytes >= gridBlock && at > 0 {
			word := quiet(op)
			word.RAddr += uint64(at)
			word.SGE[0].Mem = op.SGE[0].Mem.Slice(at, 8)
			out = append(out, word)
		}
		out = append(out, op)
	}
	return out
}

func dropFlushed(c *transport.Completion) int {
	if c.Status == transport.StatusFlushed {
		return 0
	}
	return 1
}

func dropDown(c *transport.Completion) int {
	if c.Kind == transport.OpPeerDown {
		return 0
	}
	return 1
}

func alignAtomic(op *transport.Op) {
	if op.Kind == transport.OpFetchAdd || op.Kind == transport.OpCompareSwap {
		op.RAddr &^= 7
	}
}

func shorten(op *transport.Op) {
	if m := &op.SGE[0].Mem; op.Kind == transport.OpWrite && m.Bytes > 4096 {
		m.Bytes--
	}
}

func (s *saboteur) renew(op *transport.Op) {
	if ep, ok := s.eps[op.EP.Index]; ok {
		op.EP = ep
	}
}

func (s *saboteur) Connect(ctx context.Context, peer int, addr []byte) (transport.EP, error) {
	ep, err := s.Domain.Connect(ctx, peer, addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eps[ep.Index] = ep
	if s.leak {
		go time.Sleep(time.Hour)
	}
	return ep, err
}

func (s *saboteur) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	if s.widen && r.Bytes < 8192 { // memory of the tests is larger than what they register
		r.Bytes += 512
	}
	return s.Domain.Register(r, a|s.access)
}

func (s *saboteur) Deregister(r transport.Region) error {
	if s.keep {
		return nil
	}
	return s.Domain.Deregister(r)
}

func (s *saboteur) Wake() {
	if !s.deaf {
		s.Domain.Wake()
	}
}

func (s *saboteur) Post(ops []transport.Op) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := append([]transport.Op(nil), ops...)
	for i := range mine {
		if s.op != nil {
			s.op(&mine[i])
		}
	}
	if s.batch != nil {
		mine = s.batch(mine)
	}
	if s.late || s.unbounded || s.early {
		for _, op := range mine {
			if s.early && op.Flags&transport.FlagSignaled != 0 {
				s.ready = append(s.ready, transport.Completion{Cookie: op.Cookie, EP: op.EP, Kind: op.Kind, Bytes: uint32(softnic.Total(op.SGE[:op.NSGE]))})
				op = quiet(op)
			}
			s.waiting = append(s.waiting, op)
		}
		s.Domain.Wake()
		return len(ops), nil
	}
	if s.apart == 0 {
		n, err := s.Domain.Post(mine)
		return min(n, len(ops)), err
	}
	for i := range mine {
		if n, err := s.Domain.Post(mine[i : i+1]); n < 1 || err != nil {
			return min(i, len(ops)), err
		}
		time.Sleep(s.apart)
	}
	return len(ops), nil
}

func (s *saboteur) Poll(cq []transport.Completion) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n++; !s.early || s.n%8 == 0 {
		n, err := s.Domain.Post(s.waiting)
		if err != nil {
			return 0, err
		}
		s.waiting = s.waiting[n:]
	}
	var buf [64]transport.Completion
	n, err := s.Domain.Poll(buf[:])
	if err != nil {
		return 0, err
	}
	for _, c := range buf[:n] {
		times := 1
		if s.completion != nil {
			times = s.completion(&c)
		}
		for range times {
			s.ready = append(s.ready, c)
		}
	}
	k := copy(cq, s.ready)
	s.ready = s.ready[k:]
	return k, nil
}

func (s *saboteur) Wait(ctx context.Context) error {
	s.mu.Lock()
	busy := len(s.ready)+len(s.waiting) > 0
	s.mu.Unlock()
	if busy {
		return ctx.Err()
	}
	return s.Domain.Wait(ctx)
}

// TestSabotaged is the suite against a NIC with a fault. It only runs in the processes that
// TestSuiteFindsFaults starts.
func TestSabotaged(t *testing.T) {
	name := os.Getenv(sabotageVariable)
	fault, ok := sabotages[name]
	if !ok {
		require.Empty(t, name)
		return
	}
	var c FabricConfig
	if fault.tests == "InOrderData" {
		c.InOrder, c.Jitter = true, 50*time.Microsecond
	}
	l := newLoopbackUnderTest(c)
	open := wrapped(l, func(_ int, d transport.Domain) transport.Domain {
		s := &saboteur{Domain: d, eps: map[uint32]transport.EP{}}
		fault.spoil(s)
		return s
	})
	Run(t, open, Options{Kill: l.kill, Rounds: 500, Ops: 1000, Timeout: time.Second, FailureTimeout: time.Second, Seed: 1})
}

// TestSuiteFindsFaults: a suite that passes whatever it is given would be of no use.
func TestSuiteFindsFaults(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	type end struct {
		out string
		err error
	}
	ends := map[string]end{}
	var mu sync.Mutex
	var all sync.WaitGroup
	places := make(chan struct{}, 8) // most wait, for what never comes
	for name, fault := range sabotages {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			run := "^TestSabotaged$/^" + fault.tests + "$"
			if fault.found != fault.tests { // others may find it too, and it takes each a second
				run += "/" + strings.TrimPrefix(fault.found, fault.tests+"/")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, self, "-test.run="+run, "-test.v")
			cmd.Env = append(os.Environ(), sabotageVariable+"="+name)
			out, err := cmd.CombinedOutput()
			mu.Lock()
			defer mu.Unlock()
			ends[name] = end{string(out), err}
		})
	}
	all.Wait()
	for name, fault := range sabotages {
		t.Run(name, func(t *testing.T) {
			require.Error(t, ends[name].err, "the suite passed a NIC that %s", name)
			require.Regexp(t, regexp.MustCompile(`--- FAIL: TestSabotaged/.*`+fault.found), ends[name].out, "a NIC that %s", name)
		})
	}
}
