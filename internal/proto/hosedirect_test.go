package proto

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/regmgr"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// TestBucketsWithoutACopy: from and to memory that is registered, or is used so often that it will be, bytes in buckets travel
// without a copy, whichever call moves them; what may lie on a stack, and what no policy registers, is copied.
func TestBucketsWithoutACopy(t *testing.T) {
	const rounds = 8
	for _, policy := range []regmgr.Policy{regmgr.LeavePinned, regmgr.OnDemand, regmgr.Pipelined, regmgr.Predictive, regmgr.Bounce} {
		t.Run(policy.String(), func(t *testing.T) {
			tm := newTeamWith(t, 2, tightBytes, transporttest.FabricConfig{MaxPinned: 6 << 20, MaxMessage: 100_000}, nil, func(c *Config) {
				forcedBulk(t, "register", 0)(c)
				c.Registration.Policy = policy
			})
			e, to := tm.e[0], &tm.of[0][1]
			require.NotNil(t, to.hosed)
			n := 300_000
			if policy == regmgr.Pipelined {
				n = 1_500_000 // below a mebibyte it copies
			}
			src, back := filled(n), memoryOf(n, 3)
			run := func(i int) func(int) Run {
				return func(int) Run { return Run{to, i * 500_001, 0, n} }
			}
			none := func(h Handle, err error) error {
				require.NoError(t, err)
				return h.Wait(context.Background())
			}
			before := e.Stats()
			for i := range rounds {
				off := i * 500_001
				src.Data()[0] = byte(i)
				switch i % 3 {
				case 0:
					require.NoError(t, e.Put(to, off, src))
					require.NoError(t, e.Flush(to))
					require.NoError(t, e.Get(to, off, back))
				case 1:
					require.NoError(t, none(e.PutNB(to, off, src)))
					require.NoError(t, e.Flush(to))
					require.NoError(t, none(e.GetNB(to, off, back)))
				default:
					require.NoError(t, e.PutRuns("put", 1, run(i), src))
					require.NoError(t, e.Flush(to))
					require.NoError(t, e.GetRuns("get", 1, run(i), back))
				}
				require.Equal(t, src.Data(), tm.mem[1].Slice(off, n).Data(), "round %d", i)
				require.Equal(t, src.Data(), back.Data(), "round %d", i)
				clear(back.Data())
			}
			after := e.Stats()
			direct := after[PathDirect].Bytes - before[PathDirect].Bytes
			copied := after[PathBounce].Bytes - before[PathBounce].Bytes
			require.EqualValues(t, 2*rounds*n, direct+copied, "nothing was refused, and all is counted once")
			switch policy {
			case regmgr.Bounce:
				require.Zero(t, direct)
			case regmgr.Pipelined: // where its fragments find room together
				require.Positive(t, direct)
			case regmgr.LeavePinned: // which waits for a buffer to come again
				require.GreaterOrEqual(t, direct, 2*(rounds-4)*uint64(n))
			default:
				require.Zero(t, copied)
			}
			s, _, _ := e.Registered()
			unheld(t, e, s.Lent)
			tm.freeAll(t)
		})
	}
}

// refusing is a NIC that registers no more when told so.
type refusing struct {
	transport.Domain
	on atomic.Bool
}

func (r *refusing) Register(m mem.Range, a transport.Access) (transport.Region, error) {
	if r.on.Load() {
		return transport.Region{}, &transport.LimitError{What: "registering", Found: "nothing left", Needed: "something", Setting: "the test"}
	}
	return r.Domain.Register(m, a)
}

// TestBucketRefusedUnderADirectTransfer: an owner whose NIC refuses in the middle of a transfer from or to registered memory
// gets and gives the rest by messages, and nothing is lost, counted twice or held.
func TestBucketRefusedUnderADirectTransfer(t *testing.T) {
	const n = 300_000
	var owner *refusing
	c := transporttest.FabricConfig{MaxPinned: 6 << 20}
	tm := newTeamWith(t, 2, tightBytes, c, func(d transport.Domain) transport.Domain { owner = &refusing{Domain: d}; return owner },
		forcedBulk(t, "register", 0))
	e, to := tm.e[1], &tm.of[1][0]
	src, back := filled(n), memoryOf(n, 0)
	require.NoError(t, e.Put(to, 0, src)) // src is registered now, and the first buckets are
	require.NoError(t, e.Get(to, 0, back))
	owner.on.Store(true)
	for i, off := range []int{200_000, 400_000, 1 << 20, 4<<20 - 77} { // some of the first are in buckets that are held
		src.Data()[n-1] = byte(i)
		before := e.Stats()
		require.NoError(t, e.Put(to, off, src))
		require.NoError(t, e.Flush(to))
		h, err := e.GetNB(to, off, back)
		require.NoError(t, err)
		require.NoError(t, h.Wait(context.Background()))
		require.Equal(t, src.Data(), tm.mem[0].Slice(off, n).Data())
		require.Equal(t, src.Data(), back.Data())
		after := e.Stats()
		moved := uint64(0)
		for _, p := range []Path{PathDirect, PathBounce, PathMessage} {
			moved += after[p].Bytes - before[p].Bytes
		}
		require.EqualValues(t, 2*n, moved)
		s, _, _ := e.Registered()
		unheld(t, e, s.Lent)
	}
	require.Positive(t, e.Stats()[PathMessage].Bytes)
	owner.on.Store(false)
	tm.freeAll(t)
}
