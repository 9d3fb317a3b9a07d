package superpipe

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// flavours are the NICs that pipes run over in tests.
var flavours = map[string]setup{
	"immediates":   {config: smallSlots()},
	"order":        {config: smallSlots(), fabric: transporttest.FabricConfig{InOrder: true}},
	"jitter":       {config: smallSlots(), fabric: transporttest.FabricConfig{Jitter: 20 * time.Microsecond, Seed: 3}},
	"small":        {config: smallSlots(), fabric: transporttest.FabricConfig{MaxPost: 2, MaxRecv: 16, MaxInline: 8, MaxSGE: 2, MaxMessage: 5000}},
	"small, order": {config: smallSlots(), fabric: transporttest.FabricConfig{MaxPost: 2, MaxSGE: 2, MaxMessage: Block, InOrder: true}},
	"poor":         {config: smallSlots(), fabric: transporttest.FabricConfig{NoInline: true, NoAtomics: true, NoSends: true, MaxSGE: 1}},
	"poor, order":  {config: smallSlots(), fabric: transporttest.FabricConfig{NoInline: true, NoAtomics: true, NoSends: true, MaxSGE: 1, InOrder: true}},
	"faults": {
		config: smallSlots(), fabric: transporttest.FabricConfig{InOrder: true},
		faults: transporttest.FaultPlan{Seed: 9, ShortPosts: 50, Delays: 30},
	},
	"faults, immediates": {config: smallSlots(), faults: transporttest.FaultPlan{Seed: 8, ShortPosts: 50, Delays: 30}},
}

// kind is one of the transfers there are.
type kind struct {
	name                   string
	get, lease, registered bool
	behind                 float64
	keys                   int // bytes of a stretch that has a key of its own; 0: all have one
}

var kinds = []kind{
	{name: "put"},
	{name: "put, registered", registered: true},
	{name: "put behind a move", behind: 1e-6},
	{name: "put into a lease", lease: true},
	{name: "put into a lease, registered", lease: true, registered: true},
	{name: "get", get: true},
	{name: "get, registered", get: true, registered: true},
	{name: "get behind a move", get: true, behind: 1e-6},
	{name: "put by keys", keys: 3000},
	{name: "put by keys behind a move", keys: 40_000, behind: 1e-6},
	{name: "put by keys, registered", keys: 7001, registered: true},
	{name: "get by keys", keys: 3000, get: true, behind: 1e-6},
	{name: "get by keys, registered", keys: 40_000, get: true, registered: true},
}

// transfer makes one transfer from rank a to rank b (or back, for a get) and checks every byte at its place.
func transfer(t *testing.T, a, b *rank, k kind, want []byte, shift int, what string) {
	t.Helper()
	local, remote := guard(len(want), shift), guard(len(want), shift+5)
	src, dst := local, remote
	if k.get {
		src, dst = remote, local
	}
	copy(src.in.Data(), want)
	tr := Transfer{Get: k.get, Rank: b.id, EP: a.eps[b.id], Local: local.in, Registered: k.registered, Behind: k.behind, Lease: k.lease}
	if k.registered {
		reg, err := a.d.Register(local.in, transport.LocalWrite)
		require.NoError(t, err)
		defer func() { require.NoError(t, a.d.Deregister(reg)) }()
		tr.LKey = reg.LKey
	}
	var reg transport.Region
	if k.keys > 0 {
		keys, end := b.stretch(remote.in, 1+min(len(want), k.keys)/2, k.keys)
		defer end()
		tr.Keys = keys
	} else if !k.lease {
		var err error
		reg, err = b.d.Register(remote.in, transport.AllAccess)
		require.NoError(t, err)
		defer func() { require.NoError(t, b.d.Deregister(reg)) }()
	}
	if k.behind == 0 && !k.lease && k.keys == 0 {
		tr.RAddr, tr.RKey = remote.in.Addr(), reg.RKey
	}
	p := a.begin(tr)
	switch {
	case k.lease:
		p.Step() // the first chunk's copy needs no answer
		require.NoError(t, p.Granted(a.rendezvous(p, b, remote.in)))
	case k.behind > 0, k.keys > 0:
		p.Step()
		p.Reach(remote.in.Addr(), reg.RKey)
	}
	require.NoError(t, finish(t, p), what)
	if k.registered && (!k.lease || a.o.way == WayImm || a.d.Caps().MaxSGE >= 2) {
		require.Zero(t, p.Copied(), what)
	} else if a.o.c.Policy == Super {
		require.Equal(t, len(want), p.Copied(), what)
	}
	dst.check(t, want, what)
	src.check(t, want, what+" (source)")
}

func TestEveryLength(t *testing.T) {
	lengths := []int{1, 7, 8, 4087, 4088, 4089, 4096, 8176, 8177, 12 << 10, 3*4088 + 1, 65536, 100_003}
	for name, s := range flavours {
		for policy := Super; policy <= PipelinedPins; policy++ {
			if policy != Super && name != "immediates" && name != "small, order" && name != "poor" {
				continue // the ways differ for Super only
			}
			t.Run(fmt.Sprintf("%s/%v", name, policy), func(t *testing.T) {
				s := s
				s.config.Policy = policy
				if policy != Super {
					s.config.Model = paper()
				}
				r := newRig(t, 2, s)
				rng := rand.New(rand.NewPCG(1, uint64(policy)))
				for i, k := range kinds {
					if k.lease && r.ranks[0].t == nil {
						continue
					}
					for j, n := range lengths {
						if policy != Super && j%3 != 0 {
							continue // the lengths that matter are those of sub-blocks
						}
						transfer(t, r.ranks[0], r.ranks[1], k, payload(i+j, n, rng), j%3, fmt.Sprintf("%s of %d bytes", k.name, n))
					}
				}
				r.idle()
			})
		}
	}
}

// idle checks that everything lent is back.
func (r *rig) idle() {
	r.t.Helper()
	for _, k := range r.ranks {
		if k.down.Load() {
			continue
		}
		until(r.t, "the end of all transfers", func() bool { return k.o.Live() == 0 && (k.t == nil || k.t.Active() == 0) })
		require.Equal(r.t, k.o.c.Slots, k.o.FreeSlots())
		if k.t != nil {
			require.Equal(r.t, k.t.c.Leases, k.t.FreeLeases())
			require.Zero(r.t, k.t.Broken())
		}
	}
}

func TestZeroBytes(t *testing.T) {
	r := newRig(t, 2, flavours["order"])
	p := r.ranks[0].begin(Transfer{Rank: 1, EP: r.ranks[0].eps[1], Local: mem.Of([]byte{})})
	require.NoError(t, finish(t, p))
}

// TestManyAtOnce has all ranks transfer in all directions at once, with fewer slots and leases than transfers.
func TestManyAtOnce(t *testing.T) {
	for name, s := range flavours {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3, s)
			errs := make(chan string, 64)
			workers := 0
			for _, a := range r.ranks {
				for w := range 2 {
					workers++
					go func() {
						defer func() { errs <- "" }()
						rng := rand.New(rand.NewPCG(uint64(a.id), uint64(w)))
						for range 8 {
							k := kinds[rng.IntN(len(kinds))]
							if k.lease && a.t == nil {
								continue
							}
							b := r.ranks[(a.id+1+rng.IntN(2))%3]
							n := 1 + rng.IntN(120_000)
							transfer(t, a, b, k, payload(rng.IntN(3), n, rng), rng.IntN(9), k.name)
						}
					}()
				}
			}
			for range workers {
				<-errs
			}
			r.idle()
		})
	}
}

// newSpied is two ranks on a NIC in order, where what the first one posts is seen.
func newSpied(t *testing.T) (*rig, *spyNIC) {
	s, spy := flavours["order"], &spyNIC{}
	s.nic = func(rank int, d transport.Domain) NIC {
		if rank == 0 {
			spy.NIC = d
			return spy
		}
		return d
	}
	return newRig(t, 2, s), spy
}

// TestFoldingHolds checks the rule of flow control at the NIC: chunk i is posted when i-(N-1) is acknowledged.
func TestFoldingHolds(t *testing.T) {
	for _, lease := range []bool{false, true} {
		r, spy := newSpied(t)
		k := kind{name: "put", lease: lease}
		spy.check = func(ops []transport.Op) {
			p := r.ranks[0].o.table[(ops[0].Cookie-originCookies)/mostFold].Load()
			if p != nil && p.posted >= p.settled+2 {
				t.Errorf("chunk %d was posted when %d were acknowledged", p.posted, p.settled)
			}
		}
		transfer(t, r.ranks[0], r.ranks[1], k, payload(0, 200_000, rand.New(rand.NewPCG(1, 1))), 0, "put")
		require.Greater(t, spy.posts.Load(), int64(8))
	}
}

// TestReadsOverlap: a get has several reads in flight, so that the copy of what has arrived hides behind the others.
func TestReadsOverlap(t *testing.T) {
	r, spy := newSpied(t)
	most := 0
	spy.check = func(ops []transport.Op) {
		if p := r.ranks[0].o.table[(ops[0].Cookie-originCookies)/mostFold].Load(); p != nil {
			most = max(most, p.posted-p.settled+1)
		}
	}
	transfer(t, r.ranks[0], r.ranks[1], kind{name: "get", get: true}, payload(0, 200_000, rand.New(rand.NewPCG(1, 1))), 0, "get")
	require.Equal(t, 3, most, "as many as chunks have slots")
}
