package transporttest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// rig is the ranks of one test.
type rig struct {
	s     *suite
	nodes []*node
	gone  map[int]bool // ranks that the test has ended itself
}

// node is one rank: its domain, some memory that all may reach, and the completions it has polled.
type node struct {
	s    *suite
	t    *testing.T
	rank int
	d    transport.Domain
	mem  mem.Range
	reg  transport.Region

	all    []*node
	eps    []transport.EP
	has    []bool
	got    []transport.Completion // polled and not yet asked for
	cookie uint64
}

// rig opens n ranks with bytes of registered memory each.
func (s *suite) rig(t *testing.T, n, bytes int) *rig {
	t.Helper()
	r := &rig{s: s, gone: map[int]bool{}}
	ds := s.open(t, n)
	require.Len(t, ds, n)
	t.Cleanup(func() {
		for i, d := range ds {
			if err := d.Close(); !r.gone[i] && !t.Failed() {
				require.NoError(t, err, "close rank %d", i)
			}
		}
	})
	for i, d := range ds {
		nd := &node{
			s: s, t: t, rank: i, d: d, mem: s.opt.Alloc(t, bytes), cookie: uint64(i+1) << 56,
			eps: make([]transport.EP, n), has: make([]bool, n),
		}
		var err error
		nd.reg, err = d.Register(nd.mem, transport.AllAccess)
		require.NoError(t, err)
		r.nodes = append(r.nodes, nd)
	}
	for _, nd := range r.nodes {
		nd.all = r.nodes
	}
	return r
}

// pair opens two ranks and returns them.
func (s *suite) pair(t *testing.T, bytes int) (a, b *node) {
	t.Helper()
	r := s.rig(t, 2, bytes)
	return r.nodes[0], r.nodes[1]
}

// kill ends rank i as Options.Kill does it.
func (r *rig) kill(t *testing.T, i int) {
	r.gone[i] = true
	r.s.opt.Kill(t, r.nodes[i].d)
}

// dial returns the endpoint of a peer, connecting at first use.
func (n *node) dial(peer int) (transport.EP, error) {
	if !n.has[peer] {
		ctx, cancel := context.WithTimeout(context.Background(), n.s.opt.Timeout)
		defer cancel()
		ep, err := n.d.Connect(ctx, peer, n.all[peer].d.Address())
		if err != nil {
			return ep, fmt.Errorf("rank %d connects to %d: %w", n.rank, peer, err)
		}
		n.eps[peer], n.has[peer] = ep, true
	}
	return n.eps[peer], nil
}

func (n *node) ep(peer int) transport.EP {
	n.t.Helper()
	ep, err := n.dial(peer)
	require.NoError(n.t, err)
	return ep
}

// redial ends the endpoint of a peer and connects anew.
func (n *node) redial(peer int) transport.EP {
	n.t.Helper()
	if n.has[peer] {
		require.NoError(n.t, n.d.Disconnect(n.eps[peer]))
	}
	n.has[peer] = false
	return n.ep(peer)
}

// sge names bytes of this rank's memory.
func (n *node) sge(off, bytes int) transport.SGE {
	return transport.SGE{Mem: n.mem.Slice(off, bytes), LKey: n.reg.LKey}
}

// op is a signalled operation between bytes at off here and at roff in the peer's memory.
func (n *node) op(k transport.Kind, peer, off, roff, bytes int) transport.Op {
	n.t.Helper()
	return n.opOn(n.ep(peer), k, peer, off, roff, bytes)
}

func (n *node) opOn(ep transport.EP, k transport.Kind, peer, off, roff, bytes int) transport.Op {
	n.cookie++
	return transport.Op{
		Kind: k, Flags: transport.FlagSignaled, NSGE: 1, EP: ep, SGE: [4]transport.SGE{n.sge(off, bytes)},
		RAddr: n.all[peer].mem.Addr() + uint64(roff), RKey: n.all[peer].reg.RKey, Cookie: n.cookie,
	}
}

// quiet takes the signal off an operation.
func quiet(op transport.Op) transport.Op {
	op.Flags &^= transport.FlagSignaled
	return op
}

// drain polls what there is into got.
func (n *node) drain() (int, error) {
	var cq [32]transport.Completion
	k, err := n.d.Poll(cq[:])
	if err != nil {
		return 0, fmt.Errorf("rank %d polls: %w", n.rank, err)
	}
	n.got = append(n.got, cq[:k]...)
	return k, nil
}

var errNoCompletion = errors.New("no completion came")

// tryPost posts all ops, polling when the NIC takes no more.
func (n *node) tryPost(ops ...transport.Op) error {
	deadline := time.Now().Add(n.s.opt.Timeout)
	for len(ops) > 0 {
		k, err := n.d.Post(ops)
		if err != nil {
			return fmt.Errorf("rank %d posts kind %d: %w", n.rank, ops[k].Kind, err)
		}
		if k < 0 || k > len(ops) {
			return fmt.Errorf("post of %d operations took %d", len(ops), k)
		}
		ops = ops[k:]
		if len(ops) == 0 {
			return nil
		}
		if k > 0 {
			deadline = time.Now().Add(n.s.opt.Timeout)
		} else if time.Now().After(deadline) {
			return fmt.Errorf("post stays short although rank %d polls: %w", n.rank, errNoCompletion)
		}
		if _, err := n.drain(); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) post(ops ...transport.Op) {
	n.t.Helper()
	require.NoError(n.t, n.tryPost(ops...))
}

// await returns the first completion that fits, leaving others for later.
func (n *node) await(within time.Duration, fits func(c *transport.Completion) bool) (transport.Completion, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for seen := 0; ; {
		for ; seen < len(n.got); seen++ {
			if c := n.got[seen]; fits(&c) {
				n.got = append(n.got[:seen], n.got[seen+1:]...)
				return c, nil
			}
		}
		k, err := n.drain()
		if err != nil {
			return transport.Completion{}, err
		}
		if k > 0 {
			continue
		}
		if err := n.d.Wait(ctx); err != nil {
			return transport.Completion{}, fmt.Errorf("rank %d: %w within %v; others: %+v (%w)", n.rank, errNoCompletion, within, n.got, err)
		}
	}
}

// tryWait returns the completion with a cookie.
func (n *node) tryWait(cookie uint64) (transport.Completion, error) {
	return n.await(n.s.opt.Timeout, func(c *transport.Completion) bool {
		return c.Cookie == cookie && c.Kind != transport.OpRecv && c.Kind != transport.OpPeerDown
	})
}

func (n *node) wait(cookie uint64) transport.Completion {
	n.t.Helper()
	c, err := n.tryWait(cookie)
	require.NoError(n.t, err)
	return c
}

// recv returns the next receive completion.
func (n *node) recv() transport.Completion {
	n.t.Helper()
	c, err := n.await(n.s.opt.Timeout, func(c *transport.Completion) bool { return c.Kind == transport.OpRecv })
	require.NoError(n.t, err)
	return c
}

// do posts one signalled operation and returns its completion.
func (n *node) do(op transport.Op) transport.Completion {
	n.t.Helper()
	n.post(op)
	c := n.wait(op.Cookie)
	require.Equal(n.t, op.Kind, c.Kind)
	require.Equal(n.t, op.EP, c.EP)
	return c
}

// must is do for an operation that has to succeed.
func (n *node) must(op transport.Op) transport.Completion {
	n.t.Helper()
	c := n.do(op)
	require.Equal(n.t, transport.StatusOK, c.Status, "kind %d, %d bytes", op.Kind, softnic.Total(op.SGE[:op.NSGE]))
	return c
}

// settle makes completed writes to peer visible there, where a completion alone does not say so.
func (n *node) settle(peer int) {
	n.t.Helper()
	if n.s.caps.FlushByRead {
		n.must(n.op(transport.OpRead, peer, n.mem.Bytes-8, n.all[peer].mem.Bytes-8, 8))
	}
}

// none fails the test if a completion comes that nobody asked for.
func (n *node) none() {
	n.t.Helper()
	for range 20 {
		_, err := n.drain()
		require.NoError(n.t, err)
		require.Empty(n.t, n.got, "a completion too many")
		time.Sleep(time.Millisecond / 2)
	}
}

// together runs f for 0 to n-1 at once and fails the test with their errors.
func together(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

// patternChunk is how much of a pattern is made at a time.
const patternChunk = 4096

// pattern makes the bytes from first on of the pattern of seed, which differs with seed and place.
func pattern(buf []byte, seed uint64, first int) {
	for i := 0; i < len(buf); {
		x := (seed<<32 + uint64(first+i)>>3) * 0x9e3779b97f4a7c15
		x ^= x >> 29
		if (first+i)&7 == 0 && len(buf)-i >= 8 {
			binary.LittleEndian.PutUint64(buf[i:], x)
			i += 8
			continue
		}
		buf[i] = byte(x >> (8 * (uint(first+i) & 7)))
		i++
	}
}

// fill writes the pattern of seed.
func fill(r mem.Range, seed uint64) { pattern(r.Data(), seed, 0) }

// requirePattern fails the test unless r holds fill's pattern, beginning at byte first of it.
func requirePattern(t *testing.T, r mem.Range, seed uint64, first int, what string, args ...any) {
	t.Helper()
	var buf [patternChunk]byte
	for at := 0; at < r.Bytes; at += patternChunk {
		want, got := buf[:min(patternChunk, r.Bytes-at)], r.Data()[at:]
		pattern(want, seed, first+at)
		if got = got[:len(want)]; bytes.Equal(got, want) {
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				require.Failf(t, "wrong bytes", "%s: byte %d of %d is %#x, not %#x",
					fmt.Sprintf(what, args...), at+i, r.Bytes, got[i], want[i])
			}
		}
	}
}
