package prices

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/eager"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
)

// newShop is a NIC that takes its time for each page of a put, and more for one that it has not used before.
type newShop struct {
	NIC
	more    time.Duration
	slow    time.Duration // what it takes besides, for each put
	odd     int           // so many first uses take nothing, as if the put after each had been disturbed
	used    map[uint64]bool
	puts    int
	fails   error
	refuses error
	regs    int
}

func (s *newShop) Caps() transport.Caps { return transport.Caps{MaxMessage: 1 << 30} }

func (s *newShop) Register(mem.Range, transport.Access) (transport.Region, error) {
	if s.refuses != nil {
		return transport.Region{}, s.refuses
	}
	s.regs++
	return transport.Region{LKey: 1}, nil
}

func (s *newShop) Deregister(transport.Region) error { s.regs--; return nil }

func (s *newShop) Slotted(bool, mem.Range) error { return nil }

func (s *newShop) Past(_ bool, user mem.Range, _ *regmgr.Manager) error {
	took := s.slow
	for at := user.Addr() &^ (page - 1); at < user.Addr()+uint64(user.Bytes); at += page {
		took += oldPage
		if !s.used[at] {
			took += s.more
		}
		s.used[at] = true
	}
	if s.puts++; s.puts%2 == 1 && s.puts <= 2*s.odd {
		took = 0
	}
	time.Sleep(took)
	return s.fails
}

const oldPage = 2 * time.Microsecond // what the shop takes for a page

// TestFirst: what a first use takes more is found by putting the same twice, and is nothing unless three of four tell so; the cold memory is used once
// before transfers of it are tried, where it would show in them. What is registered for that is given back, and no error is passed over.
func TestFirst(t *testing.T) {
	fails := errors.New("no")
	for name, w := range map[string]*newShop{
		"new memory costs more":          {more: 7 * time.Microsecond},
		"disturbed, less than often":     {more: 7 * time.Microsecond, odd: firstTries / 4},
		"disturbed, as often as not":     {more: 7 * time.Microsecond, odd: firstTries/4 + 1},
		"new memory costs a trifle":      {more: 8 * time.Nanosecond},
		"all takes long":                 {more: 7 * time.Microsecond, slow: 30 * time.Millisecond},
		"new memory is as any":           {},
		"what is put does not arrive":    {fails: fails},
		"nothing more may be registered": {refuses: fails},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w.used = make(map[uint64]bool)
				worked := time.Duration(0)
				c := Config{
					Sched: sched.Process(1), NIC: w, Memory: mem.Of(make([]uint64, 1<<20/8)), Cold: mem.Of(make([]uint64, 4<<20/8)),
					Rest: func(d time.Duration) error { worked += d; return nil },
				}
				m := selector.Machine{Model: superpipe.Model{Net: 2e9}}
				cache, err := regmgr.New(regmgr.Config{Policy: regmgr.OnDemand, Registrar: w, Sched: c.Sched, Quiet: true})
				require.NoError(t, err)
				m.First, err = c.first(cache)
				require.Zero(t, w.regs)
				if w.fails != nil || w.refuses != nil {
					require.ErrorIs(t, err, fails)
					return
				}
				require.NoError(t, err)
				want := w.more.Seconds() / page
				if w.odd > firstTries/4 {
					want = 0
				}
				require.InDelta(t, want, m.First, 1e-15)
				require.Positive(t, worked)
				if w.slow > 0 {
					require.Equal(t, 2*firstFew, w.puts)
				}

				for _, all := range []mem.Range{c.near(), c.Cold} {
					w.fails, w.used = nil, make(map[uint64]bool)
					require.NoError(t, c.use(&m, all, 300<<10, cache))
					used := len(w.used)
					if want*m.Model.Net >= usedPart {
						require.GreaterOrEqual(t, used, all.Bytes/page)
						w.fails = fails
						require.ErrorIs(t, c.use(&m, all, 300<<10, cache), fails)
					} else {
						require.Zero(t, used)
					}
				}
				require.NoError(t, c.use(&m, c.Cold, 0, cache), "a NIC that moves nothing")
			})
		})
	}
}

// TestFirstTold: what the first use of memory costs is told where it is worth a line.
func TestFirstTold(t *testing.T) {
	m := measuredMachine()
	m.First = tellFirst / 2 / page
	none := len(From(m, [3]eager.Costs{}).Rows())
	m.First = 2e-9
	rows := From(m, [3]eager.Costs{}).Rows()
	require.Len(t, rows, none+1)
	require.Equal(t, Row{"memory that is new to the NIC", "8.2 us more for each 4 KiB that go direct"}, rows[len(rows)-1])
}
