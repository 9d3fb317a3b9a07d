package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
	"gopgas/window"
)

// levelNodes is the node of each rank: two that are shared, of which one is not in the order of ranks, and one of a single rank.
var levelNodes = []int{0, 1, 0, 1, 2}

// envNodes is the folder in which a rank that has made a node leaves the number of its process, and envThere says that a rank is where it
// belongs.
const envNodes, envThere = "PGAS_TEST_NODES", "PGAS_TEST_THERE"

// toNode starts this process anew on its node, if it is a rank: an IPC name space that it shares with the node's other ranks, so that
// they map each other's memory, and other ranks are reached as over a network.
func toNode(t *testing.T) {
	rank, err := strconv.Atoi(os.Getenv("PMI_RANK"))
	if err != nil || os.Getenv(envThere) != "" {
		return
	}
	node := levelNodes[rank]
	if node == 0 {
		return
	}
	file := filepath.Join(os.Getenv(envNodes), strconv.Itoa(node))
	first := true
	for r := range rank {
		first = first && levelNodes[r] != node
	}
	argv := []string{"unshare", "--ipc"}
	if os.Geteuid() != 0 {
		argv = append(argv, "--map-root-user")
	}
	if !first {
		argv = []string{"nsenter", "--ipc", "--target", awaitFile(t, file)}
		if os.Geteuid() != 0 {
			argv = append(argv, "--user", "--preserve-credentials")
		}
	}
	tool, err := exec.LookPath(argv[0])
	require.NoError(t, err)
	require.NoError(t, os.Setenv(envThere, "yes"))
	require.NoError(t, syscall.Exec(tool, append(argv, os.Args...), os.Environ()))
}

// awaitFile returns what stands in a file that another process makes by renaming it.
func awaitFile(t *testing.T, name string) (text string) {
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(name)
		text = string(b)
		return err == nil
	}, 30*time.Second, time.Millisecond)
	return text
}

// settle tells the other ranks of the node where it is.
func settle(t *testing.T) {
	rank, err := strconv.Atoi(os.Getenv("PMI_RANK"))
	if err != nil || levelNodes[rank] == 0 {
		return
	}
	file := filepath.Join(os.Getenv(envNodes), strconv.Itoa(levelNodes[rank]))
	part := fmt.Sprint(file, ".", rank)
	require.NoError(t, os.WriteFile(part, []byte(strconv.Itoa(os.Getpid())), 0o600))
	require.NoError(t, os.Rename(part, file))
}

// TestLevelsOfRealNodes: collectives of processes on several nodes, of which some are shared, each with what it must give.
func TestLevelsOfRealNodes(t *testing.T) {
	if os.Getenv("PMI_RANK") == "" {
		t.Setenv(envNodes, t.TempDir())
	}
	toNode(t)
	settle(t)
	pgastest.RunProcs(t, len(levelNodes), func(ctx context.Context, w *pgas.World) error {
		for r, node := range levelNodes {
			way := "tcp"
			if node == levelNodes[w.Rank()] {
				way = "shm"
			}
			if n, _ := w.Node(r); n != node || w.Transport(r) != way && w.Transport(r) != "verbs" {
				return fmt.Errorf("rank %d is on node %d and reached by %s", r, n, w.Transport(r))
			}
		}
		if err := speaks(ctx, w); err != nil {
			return err
		}
		for _, f := range []func(context.Context, *pgas.Team) error{separates, moves, prefixes} {
			if err := f(ctx, w.Team()); err != nil {
				return err
			}
		}
		// In another order of members the first ones of the nodes are others.
		back, err := w.Team().Split(ctx, 0, -w.Rank())
		if err != nil {
			return err
		}
		return errors.Join(separates(ctx, back), moves(ctx, back), prefixes(ctx, back), back.Free(ctx))
	})
}

// speaks: in barriers only the first member of a node sends anything to other nodes.
func speaks(ctx context.Context, w *pgas.World) error {
	sent := func() (ops uint64) {
		for name, paths := range w.Stats() {
			for _, p := range paths {
				if name != "shm" {
					ops += uint64(p.Ops)
				}
			}
		}
		return ops
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	before := sent()
	for range 10 {
		if err := w.Barrier(ctx); err != nil {
			return err
		}
	}
	first := w.Rank() == 0 || w.Rank() == 1 || w.Rank() == 4
	if now := sent(); now > before != first {
		return fmt.Errorf("rank %d has sent %d operations over the network in ten barriers", w.Rank(), now-before)
	}
	return nil
}

// separates: who leaves a barrier finds what all have put before it.
func separates(ctx context.Context, team *pgas.Team) error {
	n, me := team.Size(), team.Rank()
	win, err := window.Allocate[int](ctx, team, n)
	if err != nil {
		return err
	}
	for round := 1; round <= 20; round++ {
		for m := range n {
			if err := win.Put(m, me, []int{round}); err != nil {
				return err
			}
		}
		if err := errors.Join(win.FlushAll(), team.Barrier(ctx)); err != nil {
			return err
		}
		for m, v := range win.Local() {
			if v != round {
				return fmt.Errorf("member %d left barrier %d, and finds %d of member %d", me, round, v, m)
			}
		}
		if err := team.BarrierNB().Wait(ctx); err != nil {
			return err
		}
	}
	return win.Free(ctx)
}

// moves: broadcasts, reductions and gathers, short ones and such as do not fit into an outbox.
func moves(ctx context.Context, team *pgas.Team) error {
	n, me := team.Size(), team.Rank()
	for _, size := range []int{1, 7, 5000} {
		buf, sum, all := make([]int64, size), make([]int64, size), make([]int64, size*n)
		for root := range n {
			for i := range buf {
				buf[i] = int64(me*1000 + i)
			}
			if err := pgsync.Broadcast(ctx, team, buf, root); err != nil {
				return err
			}
			for i, v := range buf {
				if v != int64(root*1000+i) {
					return fmt.Errorf("element %d of %d from member %d is %d", i, size, root, v)
				}
			}
		}
		for i := range buf {
			buf[i] = int64(me + i)
		}
		if err := errors.Join(pgsync.AllReduce(ctx, team, sum, buf, pgsync.Sum), pgsync.AllGather(ctx, team, all, buf)); err != nil {
			return err
		}
		for i, v := range sum {
			if want := int64(n*(n-1)/2 + n*i); v != want {
				return fmt.Errorf("sum %d of %d is %d, not %d", i, size, v, want)
			}
		}
		for i, v := range all {
			if want := int64(i/size + i%size); v != want {
				return fmt.Errorf("element %d of %d of all is %d, not %d", i, size, v, want)
			}
		}
	}
	cards, err := team.Exchange(ctx, make([]byte, me))
	for m, card := range cards {
		if len(card) != m {
			return fmt.Errorf("the card of member %d has %d bytes", m, len(card))
		}
	}
	return err
}

// prefixes: scans and all-to-all.
func prefixes(ctx context.Context, team *pgas.Team) error {
	n, me := team.Size(), team.Rank()
	mine, before := []int{me + 1}, make([]int, 1)
	out, in := make([]int, n), make([]int, n)
	for m := range out {
		out[m] = 10*me + m
	}
	if err := errors.Join(coll.Scan(ctx, team, before, mine, pgsync.Sum), coll.AllToAll(ctx, team, in, out)); err != nil {
		return err
	}
	if err := parts(ctx, team); err != nil {
		return err
	}
	if before[0] != (me+1)*(me+2)/2 {
		return fmt.Errorf("the sum up to member %d is %d", me, before[0])
	}
	for m, v := range in {
		if v != 10*m+me {
			return fmt.Errorf("from member %d came %d", m, v)
		}
	}
	return nil
}

// parts: gathers and scatters of different lengths, short ones and such as do not fit into an outbox, and all-to-all of different lengths.
func parts(ctx context.Context, team *pgas.Team) error {
	n, me := team.Size(), team.Rank()
	for _, unit := range []int{1, 300, 3000} {
		var counts []int
		var all []uint64
		for m := range n {
			counts = append(counts, unit*m)
			all = append(all, words(unit*m, func(i int) uint64 { return word(m, 0, i) })...)
		}
		mine := words(unit*me, func(i int) uint64 { return word(me, 0, i) })
		for root := range n {
			every, back := make([]uint64, len(all)), make([]uint64, len(mine))
			var got, from []uint64
			if me == root {
				got, from = make([]uint64, len(all)), all
			}
			err := errors.Join(coll.GatherV(ctx, team, got, counts, mine, root), coll.AllGatherV(ctx, team, every, counts, mine),
				coll.ScatterV(ctx, team, back, from, counts, root))
			if err != nil {
				return err
			}
			if me == root && !slices.Equal(got, all) || !slices.Equal(every, all) || !slices.Equal(back, mine) {
				return fmt.Errorf("parts of %d words, root %d: member %d has got something else", unit, root, me)
			}
		}
		// Member m gets unit words from member me, and as many more as its number.
		var out, want []uint64
		var send, recv []int
		for m := range n {
			send, recv = append(send, unit+m), append(recv, unit+me)
			out = append(out, words(unit+m, func(i int) uint64 { return word(me, m, i) })...)
			want = append(want, words(unit+me, func(i int) uint64 { return word(m, me, i) })...)
		}
		in := make([]uint64, len(want))
		if err := coll.AllToAllV(ctx, team, in, recv, out, send); err != nil {
			return err
		}
		if !slices.Equal(in, want) {
			return fmt.Errorf("all-to-all of %d words: member %d has got something else", unit, me)
		}
	}
	return nil
}
