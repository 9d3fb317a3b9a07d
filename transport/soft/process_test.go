package soft_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/soft"
)

// The test binary runs itself as further ranks. A rank prints its address, reads those of all, and then does
// what it is told, a line at a time.
const (
	rankEnv  = "SOFT_TEST_RANK" // rank,size,job
	memBytes = 16 << 20
)

func TestMain(m *testing.M) {
	if v := os.Getenv(rankEnv); v != "" {
		if err := rankMain(v); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// rank is one process of a test's job, the test's own or another.
type rank struct {
	d     transport.Domain
	me    int
	mem   mem.Range
	reg   transport.Region
	peers []remote
	eps   []transport.EP
	next  uint64
	got   []transport.Completion

	recvBytes int // of each receive buffer
}

// remote is what a rank knows of another's memory.
type remote struct {
	addr []byte
	base uint64
	rkey uint64
}

func newRank(cfg soft.Config, me, size int, job string) (*rank, error) {
	if cfg.MaxPinned == 0 {
		cfg.MaxPinned = 1 << 30 // more than RLIMIT_MEMLOCK often is
	}
	d, err := soft.New(cfg).Open(context.Background(), transport.Config{Rank: me, Size: size, Job: job, Secret: []byte(job + "'s secret")})
	if err != nil {
		return nil, err
	}
	r := &rank{d: d, me: me, mem: mem.Of(make([]uint64, memBytes/8)), peers: make([]remote, size), eps: make([]transport.EP, size)}
	r.reg, err = d.Register(r.mem, transport.AllAccess)
	return r, err
}

// card is what a rank tells the others.
func (r *rank) card() string {
	return fmt.Sprintf("%s,%d,%d", hex.EncodeToString(r.d.Address()), r.mem.Addr(), r.reg.RKey)
}

// learn takes the cards of all ranks.
func (r *rank) learn(cards []string) error {
	for i, c := range cards {
		f := strings.Split(c, ",")
		if len(f) != 3 {
			return fmt.Errorf("card %q", c)
		}
		var err [3]error
		r.peers[i].addr, err[0] = hex.DecodeString(f[0])
		r.peers[i].base, err[1] = strconv.ParseUint(f[1], 10, 64)
		r.peers[i].rkey, err[2] = strconv.ParseUint(f[2], 10, 64)
		if e := errors.Join(err[:]...); e != nil {
			return e
		}
	}
	return nil
}

func (r *rank) connect(peer int) error {
	ep, err := r.d.Connect(context.Background(), peer, r.peers[peer].addr)
	r.eps[peer] = ep
	return err
}

// op is a signalled operation on bytes at off here and at roff at the peer.
func (r *rank) op(k transport.Kind, peer, off, roff, bytes int) transport.Op {
	r.next++
	op := transport.Op{
		Kind: k, Flags: transport.FlagSignaled, NSGE: 1, EP: r.eps[peer], Cookie: r.next,
		RAddr: r.peers[peer].base + uint64(roff), RKey: r.peers[peer].rkey,
	}
	op.SGE[0] = transport.SGE{Mem: r.mem.Slice(off, bytes), LKey: r.reg.LKey}
	return op
}

func (r *rank) post(ops ...transport.Op) error {
	for deadline := time.Now().Add(10 * time.Second); len(ops) > 0; {
		n, err := r.d.Post(ops)
		if err != nil {
			return err
		}
		if ops = ops[n:]; len(ops) > 0 {
			if err := r.poll(time.Millisecond); err != nil {
				return err
			}
			if time.Now().After(deadline) {
				return errors.New("post stays short")
			}
		}
	}
	return nil
}

// poll takes completions into got; it waits if there are none.
func (r *rank) poll(limit time.Duration) error {
	var cq [64]transport.Completion
	n, err := r.d.Poll(cq[:])
	if n == 0 && err == nil && limit > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		_ = r.d.Wait(ctx)
		cancel()
		n, err = r.d.Poll(cq[:])
	}
	r.got = append(r.got, cq[:n]...)
	return err
}

// await returns the first completion that fits.
func (r *rank) await(limit time.Duration, fits func(c transport.Completion) bool) (transport.Completion, error) {
	for deadline := time.Now().Add(limit); ; {
		for i, c := range r.got {
			if fits(c) {
				r.got = append(r.got[:i], r.got[i+1:]...)
				return c, nil
			}
		}
		if time.Now().After(deadline) {
			return transport.Completion{}, fmt.Errorf("no completion in %v; others: %v", limit, r.got)
		}
		if err := r.poll(10 * time.Millisecond); err != nil {
			return transport.Completion{}, err
		}
	}
}

// do posts one operation and returns how it ended.
func (r *rank) do(op transport.Op) (transport.Status, error) {
	if err := r.post(op); err != nil {
		return 0, err
	}
	c, err := r.await(10*time.Second, func(c transport.Completion) bool { return c.Cookie == op.Cookie && c.Kind == op.Kind })
	return c.Status, err
}

func (r *rank) must(op transport.Op) error {
	s, err := r.do(op)
	if err == nil && s != transport.StatusOK {
		err = fmt.Errorf("operation of kind %d on rank %d ended with status %d", op.Kind, op.EP.Index, s)
	}
	return err
}

// rankMain is another process.
func rankMain(env string) error {
	f := strings.Split(env, ",")
	me, _ := strconv.Atoi(f[0])
	size, _ := strconv.Atoi(f[1])
	r, err := newRank(soft.Config{}, me, size, f[2])
	if err != nil {
		return err
	}
	fmt.Println(r.card())
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil // the test has ended, in whatever way
		}
		words := strings.Fields(line)
		answer, err := r.obey(words[0], words[1:])
		if err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSpace(line[:min(len(line), 40)]), err)
		}
		fmt.Println("ok", answer)
		if words[0] == "close" {
			return nil
		}
	}
}

// process is another rank, as the test sees it.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	in   *os.File
	out  *bufio.Reader
	card string
}

func startRank(t testing.TB, me, size int, job string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d,%d,%s", rankEnv, me, size, job))
	cmd.Stderr = os.Stderr
	pr, pw, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdin = pr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	pr.Close()
	p := &process{t: t, cmd: cmd, in: pw, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		pw.Close()
		timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
	})
	p.card = p.line()
	return p
}

func (p *process) line() string {
	p.t.Helper()
	s, err := p.out.ReadString('\n')
	require.NoError(p.t, err)
	s = strings.TrimSpace(s)
	require.False(p.t, strings.HasPrefix(s, "error"), s)
	return s
}

// begin tells the rank to do something, and end waits until it is done.
func (p *process) begin(format string, args ...any) {
	p.t.Helper()
	_, err := fmt.Fprintf(p.in, format+"\n", args...)
	require.NoError(p.t, err)
}

func (p *process) end() string {
	p.t.Helper()
	s, ok := strings.CutPrefix(p.line(), "ok")
	require.True(p.t, ok, s)
	return strings.TrimSpace(s)
}

func (p *process) tell(format string, args ...any) string {
	p.t.Helper()
	p.begin(format, args...)
	return p.end()
}

// job starts a job of size processes: this one is rank 0.
func job(t testing.TB, cfg soft.Config, size int) (*rank, []*process) {
	t.Helper()
	name := fmt.Sprintf("job%d", time.Now().UnixNano())
	r, err := newRank(cfg, 0, size, name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.d.Close() })
	ps := make([]*process, size)
	cards := []string{r.card()}
	for i := 1; i < size; i++ {
		ps[i] = startRank(t, i, size, name)
		cards = append(cards, ps[i].card)
	}
	require.NoError(t, r.learn(cards))
	for _, p := range ps[1:] {
		p.tell("cards %s", strings.Join(cards, " "))
	}
	for i := range size {
		require.NoError(t, r.connect(i))
	}
	return r, ps
}
