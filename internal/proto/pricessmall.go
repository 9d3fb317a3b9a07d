package proto

import (
	"context"
	"errors"
	"sync"
	"time"

	"gopgas/eager"
	"gopgas/internal/callsite"
	"gopgas/internal/mem"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
)

// How small transfers are measured: rounds through the slots and past them by turns, and of each way the least round counts, since
// what disturbs makes longer, never shorter.
const (
	smallOps    = 16 // of a round
	smallRounds = 16
	smallLeast  = 4                    // rounds, however long they take
	smallTime   = 2 * time.Millisecond // for the others
)

// bySlot is what small puts, and gets, take in seconds: through a slot, and past it.
type bySlot struct {
	bytes   int
	through [2]float64
	past    [2]float64
}

// gaugeSmall measures the costs of small puts and gets.
func (n *nic) gaugeSmall(m *superpipe.Model, both mem.Range, reg transport.Region) (puts, gets eager.Costs, small bySlot, err error) {
	cache, err := regmgr.New(regmgr.Config{Policy: regmgr.LeavePinned, Registrar: n.d, Sched: n.e.Sched, Quiet: true})
	if err != nil {
		return nil, nil, small, err
	}
	small.bytes = n.inline + 8 // what is smaller needs no slot
	var busy sync.Mutex        // in the place of small's, which others may hold
	costs := eager.Measurement{
		Now: n.e.Sched.Now, Registrar: n.d, Largest: n.pool.SlotBytes(),
		Ask: func(get bool) {
			busy.Lock()
			defer busy.Unlock()
			if !get {
				var stack callsite.Stack
				callsite.Here(&stack, framesBelow)
				_ = stack.Hash()
			}
		},
		Past: func(get bool) (time.Duration, error) {
			through, past, err := n.gaugePast(get, cache, both, reg)
			i := 0
			if get {
				i = 1
			}
			small.through[i], small.past[i] = through.Seconds(), past.Seconds()
			return past - through, err
		},
		Wire: func(bytes int) time.Duration { return time.Duration(m.Put(float64(bytes)) / nanosecond) },
	}
	puts, gets, err = eager.Measure(costs)
	return puts, gets, small, errors.Join(err, cache.Close())
}

// gaugePast is how long a transfer of nearly nothing takes through the slots, and past them.
func (n *nic) gaugePast(get bool, cache *regmgr.Manager, both mem.Range, reg transport.Region) (through, past time.Duration, err error) {
	half := both.Bytes / 2
	far := both.Slice(half, half)
	r := &Remote{Rank: n.e.Rank, Bytes: half, raddr: far.Addr(), rkey: reg.RKey, keyed: true, room: half}
	user := both.Slice(0, n.inline+8)
	t := journey{name: "measure", kind: transport.OpWrite, r: r, path: PathBypass}
	if get {
		t.kind = transport.OpRead
	}
	ways := [...]func() error{
		func() error { return n.throughSlot(&t, user) },
		func() error { return n.pastSlot(&t, user, cache) },
	}
	var least [len(ways)]time.Duration
	if err := n.leasts(least[:], ways[:]...); err != nil {
		return 0, 0, err
	}
	return least[0], least[1], nil
}

// leasts sets how long one of each of some functions takes, done many times by turns.
func (n *nic) leasts(least []time.Duration, ways ...func() error) error {
	began := n.e.Sched.Now()
	for round := range smallRounds {
		if round >= smallLeast && n.e.Sched.Now()-began > smallTime {
			break
		}
		for i, f := range ways {
			start := n.e.Sched.Now()
			for range smallOps {
				if err := f(); err != nil {
					return err
				}
			}
			if took := (n.e.Sched.Now() - start) / smallOps; round == 0 || took < least[i] {
				least[i] = took
			}
		}
	}
	return nil
}

// throughSlot is a transfer through the bounce pool with its wait.
func (n *nic) throughSlot(t *journey, user mem.Range) error {
	if t.kind == transport.OpRead {
		err := n.get(t.r, t.off, user)
		n.e.counts.forget(PathBounce, t.r.Rank, user.Bytes)
		return err
	}
	err := n.put(t.name, t.r, t.off, user)
	n.e.counts.forget(PathBounce, t.r.Rank, user.Bytes)
	end := &n.ends[t.r.Rank]
	if err == nil {
		err = n.waitUntil(t.name, t.r.Rank, func() bool { return end.pending.Load() == 0 })
	}
	return err
}

// pastSlot is a transfer as single makes it, but for a cache of its own, so that nothing is counted as the program's.
func (n *nic) pastSlot(t *journey, user mem.Range, cache *regmgr.Manager) error {
	if err := n.reach(t.name, t.r, t.off, user.Bytes); err != nil {
		return err
	}
	h, id, err := n.beginOne(t.name, t.r.Rank)
	if err != nil {
		return err
	}
	var hold regmgr.Hold
	if err := cache.Acquire(&hold, regmgr.Request{Mem: user, Access: t.rights()}); err != nil {
		n.abandon(id)
		n.partDone(h.id, nil)
		return err
	}
	defer cache.Release(&hold)
	n.e.counts.add(t.path, t.r.Rank, user.Bytes)
	n.e.counts.forget(t.path, t.r.Rank, user.Bytes)
	op := transport.Op{Kind: t.kind, NSGE: 1, RAddr: t.r.raddr + uint64(t.off), RKey: t.r.rkey}
	op.SGE[0] = transport.SGE{Mem: user, LKey: hold.LKey()}
	if err := n.post(t.name, id, op); err != nil {
		n.partDone(h.id, nil)
		return err
	}
	return h.Wait(context.Background())
}
