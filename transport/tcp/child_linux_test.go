package tcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/tcp"
)

// childVariable makes the test binary a rank of a job instead of running the tests.
const childVariable = "GOPGAS_TCP_TEST_RANK"

// role is what a child is told by the variable, as JSON.
type role struct {
	Rank, Size int
	Timeout    time.Duration
	Plain      bool // it serves plain connections too, as servePlain says
	Core       int  // 1 + the number of the core that it is bound to; 0: it is not
	Unplugged  bool // in a network namespace of its own, whose only interface comes up a little later than the first command
}

// card is what a rank tells the others.
type card struct {
	Address []byte
	Base    uint64
	RKey    uint64
	Plain   string // where it serves plain connections
}

// Layout of a rank's memory: a counter, a place for each rank's words, a large area.
const (
	wordsAt    = 64
	areaAt     = 4096
	areaBytes  = 4 << 20
	childBytes = areaAt + areaBytes
)

// peer is a rank of a job of processes; the test itself is rank 0.
type peer struct {
	role
	d     transport.Domain
	m     mem.Range
	reg   transport.Region
	cards []card
	eps   []transport.EP
	got   []transport.Completion
}

func openPeer(r role) (*peer, error) {
	d, err := tcp.New(tcp.Config{FailureTimeout: r.Timeout}).Open(noContext(), transport.Config{
		Rank: r.Rank, Size: r.Size, Job: "processes", Secret: []byte("between us"), Sched: sched.Process(r.Size),
	})
	if err != nil {
		return nil, err
	}
	p := &peer{role: r, d: d, m: mem.Of(make([]uint64, childBytes/8)), eps: make([]transport.EP, r.Size)}
	p.reg, err = d.Register(p.m, transport.AllAccess)
	return p, err
}

func (p *peer) card() card { return card{Address: p.d.Address(), Base: p.m.Addr(), RKey: p.reg.RKey} }

// op is an operation between bytes at off here and at roff there.
func (p *peer) op(k transport.Kind, to, off, roff, bytes int) (transport.Op, error) {
	if p.eps[to].Incarnation == 0 {
		ep, err := p.d.Connect(noContext(), to, p.cards[to].Address)
		if err != nil {
			return transport.Op{}, err
		}
		p.eps[to] = ep
	}
	return transport.Op{
		Kind: k, Flags: transport.FlagSignaled, NSGE: 1, EP: p.eps[to], Arg0: 1,
		SGE:   [4]transport.SGE{{Mem: p.m.Slice(off, bytes), LKey: p.reg.LKey}},
		RAddr: p.cards[to].Base + uint64(roff), RKey: p.cards[to].RKey,
	}, nil
}

// next returns the next completion that fits.
func (p *peer) next(within time.Duration, fits func(transport.Completion) bool) (transport.Completion, error) {
	var cq [64]transport.Completion
	for deadline := time.Now().Add(within); ; {
		for i, c := range p.got {
			if fits(c) {
				p.got = append(p.got[:i], p.got[i+1:]...)
				return c, nil
			}
		}
		n, err := p.d.Poll(cq[:])
		if err != nil {
			return transport.Completion{}, err
		}
		p.got = append(p.got, cq[:n]...)
		if n == 0 {
			if time.Now().After(deadline) {
				return transport.Completion{}, fmt.Errorf("rank %d: no completion within %v; others %+v", p.Rank, within, p.got)
			}
			runtime.Gosched()
		}
	}
}

// do makes one operation, which must succeed.
func (p *peer) do(k transport.Kind, to, off, roff, bytes int) error {
	op, err := p.op(k, to, off, roff, bytes)
	if err != nil {
		return err
	}
	for n := 0; n == 0; {
		if n, err = p.d.Post([]transport.Op{op}); err != nil {
			return err
		}
	}
	c, err := p.next(20*time.Second, func(c transport.Completion) bool { return c.Kind == k && c.EP == op.EP })
	if err == nil && c.Status != transport.StatusOK {
		err = fmt.Errorf("rank %d to %d: kind %d ended with status %d", p.Rank, to, k, c.Status)
	}
	return err
}

// exchange counts on every listed rank, writes and reads back, n times.
func (p *peer) exchange(with []int, n int) error {
	for i := range n {
		for _, to := range with {
			p.m.Word64(8).Store(uint64(i)<<8 + uint64(p.Rank))
			if err := p.do(transport.OpFetchAdd, to, 16, 0, 8); err != nil {
				return err
			}
			if err := p.do(transport.OpWrite, to, 8, wordsAt+8*p.Rank, 8); err != nil {
				return err
			}
			if err := p.do(transport.OpRead, to, 24, wordsAt+8*p.Rank, 8); err != nil {
				return err
			}
			if got := p.m.Word64(24).Load(); got != uint64(i)<<8+uint64(p.Rank) {
				return fmt.Errorf("rank %d read %#x back from %d in round %d", p.Rank, got, to, i)
			}
		}
	}
	return nil
}

// beChild serves the commands of the test: "cards" and a list, "exchange" with some ranks, "quit".
func beChild(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	p, err := openPeer(r)
	if err != nil {
		return err
	}
	k := p.card()
	if r.Plain {
		if k.Plain, err = servePlain(); err != nil {
			return err
		}
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(k); err != nil {
		return err
	}
	in := json.NewDecoder(os.Stdin)
	for {
		var c struct {
			Cards []card
			With  []int
			Times int
			Files int // a limit: see limitFiles
		}
		if err := in.Decode(&c); err != nil {
			if err == io.EOF {
				return p.d.Close()
			}
			return err
		}
		if c.Cards != nil {
			p.cards = c.Cards
			continue
		}
		text := "ok"
		if err := limitFiles(c.Files); err != nil {
			text = err.Error()
		}
		if r.Unplugged {
			time.AfterFunc(r.Timeout/20, func() {
				if err := plugIn(); err != nil {
					fmt.Fprintln(os.Stderr, "bring the interface up:", err)
				}
			})
		}
		if err := p.exchange(c.With, c.Times); err != nil {
			text = err.Error()
		}
		if err := out.Encode(text); err != nil {
			return err
		}
	}
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		if err := beChild(text); err != nil {
			fmt.Fprintln(os.Stderr, "rank of a test:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	for end := time.Now().Add(20 * time.Second); code == 0; time.Sleep(time.Millisecond) {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if !strings.Contains(string(stacks), "tcp.(*") {
			break
		}
		if time.Now().After(end) { // a goroutine that has told Close that it is done may not have ended yet
			fmt.Fprintf(os.Stderr, "left behind by the tests:\n%s", stacks)
			code = 1
		}
	}
	os.Exit(code)
}

// child is a rank that is another process.
type child struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *json.Decoder
}

// start starts a child and returns its card.
func start(t testing.TB, r role) (*child, card) {
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	if r.Unplugged {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET}
	}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, bound(r.Core, cmd.Start))
	c := &child{cmd, json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out))}
	t.Cleanup(func() {
		_ = in.Close()
		stop := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer stop.Stop()
		_ = cmd.Wait() // those that the test has killed report it
	})
	var k card
	require.NoError(t, c.out.Decode(&k))
	return c, k
}

// job starts ranks 1 to n-1 as processes and opens rank 0 here.
func job(t testing.TB, n int, timeout time.Duration) (*peer, []*child) {
	return jobOf(t, n, role{Timeout: timeout})
}

// jobOf is job with children that are as told.
func jobOf(t testing.TB, n int, like role) (*peer, []*child) {
	like.Size = n
	me, err := openPeer(role{Size: n, Timeout: like.Timeout})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, me.d.Close()) })
	cards := []card{me.card()}
	children := []*child{nil}
	for r := 1; r < n; r++ {
		like.Rank = r
		c, k := start(t, like)
		cards, children = append(cards, k), append(children, c)
	}
	me.cards = cards
	for _, c := range children[1:] {
		require.NoError(t, c.in.Encode(map[string]any{"Cards": cards}))
	}
	return me, children
}

func (c *child) exchange(t *testing.T, times int, with ...int) {
	t.Helper()
	require.NoError(t, c.in.Encode(map[string]any{"With": with, "Times": times}))
}

func (c *child) ok(t *testing.T) {
	t.Helper()
	var text string
	require.NoError(t, c.out.Decode(&text))
	require.Equal(t, "ok", text)
}
