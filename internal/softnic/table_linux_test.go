package softnic

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

func newTable(t *testing.T, limit int) *Table {
	t.Helper()
	tab, err := NewTable(newPins(t, 4<<20), limit)
	require.NoError(t, err)
	return tab
}

func TestKeys(t *testing.T) {
	tab := newTable(t, 4)
	s := sched.Process(1)
	r := mem.Of(make([]uint64, 1024))
	reg, err := tab.Add(r.Slice(64, 512), transport.RemoteRead|transport.RemoteAtomic)
	require.NoError(t, err)
	base := r.Addr() + 64
	hold := func(addr, key uint64, n int, need transport.Access) bool {
		m, h := tab.Hold(addr, key, n, need)
		if h == nil {
			return false
		}
		require.Equal(t, n, m.Bytes)
		require.True(t, n == 0 || m.Addr() == addr)
		h.Release()
		return true
	}
	for _, c := range []struct {
		what  string
		addr  uint64
		key   uint64
		n     int
		need  transport.Access
		allow bool
	}{
		{"all", base, reg.RKey, 512, transport.RemoteRead, true},
		{"nothing at the end", base + 512, reg.RKey, 0, transport.RemoteRead, true},
		{"two rights", base, reg.RKey, 8, transport.RemoteRead | transport.RemoteAtomic, true},
		{"a right not given", base, reg.RKey, 8, transport.RemoteWrite, false},
		{"one right of two", base, reg.RKey, 8, transport.RemoteRead | transport.RemoteWrite, false},
		{"one too many", base, reg.RKey, 513, transport.RemoteRead, false},
		{"one before", base - 1, reg.RKey, 8, transport.RemoteRead, false},
		{"one behind", base + 505, reg.RKey, 8, transport.RemoteRead, false},
		{"overflow", ^uint64(0) - 3, reg.RKey, 8, transport.RemoteRead, false},
		{"overflow by length", base, reg.RKey, -1, transport.RemoteRead, false},
		{"zero", 0, 0, 0, 0, false},
		{"no key", base, 0, 8, transport.RemoteRead, false},
		{"only the slot", base, reg.RKey & slotMask, 8, transport.RemoteRead, false},
		{"next slot", base, reg.RKey + 1, 8, transport.RemoteRead, false},
		{"slot out of the table", base, reg.RKey | slotMask, 8, transport.RemoteRead, false},
		{"the local key", base, reg.LKey, 8, transport.RemoteRead, false},
	} {
		require.Equal(t, c.allow, hold(c.addr, c.key, c.n, c.need), c.what)
	}
	require.True(t, tab.Local(r.Slice(64, 512), reg.LKey, 0))
	require.False(t, tab.Local(r.Slice(64, 512), reg.LKey, transport.LocalWrite))
	require.False(t, tab.Local(r.Slice(63, 8), reg.LKey, 0))
	require.False(t, tab.Local(r.Slice(64, 8), reg.RKey, 0))

	require.NoError(t, tab.Remove(s, reg))
	require.Error(t, tab.Remove(s, reg))
	require.False(t, hold(base, reg.RKey, 8, transport.RemoteRead))
	again, err := tab.Add(r.Slice(64, 512), transport.RemoteRead)
	require.NoError(t, err)
	require.Equal(t, Slot(reg.RKey), Slot(again.RKey), "the slot is used again")
	require.NotEqual(t, reg.RKey, again.RKey)
	require.False(t, hold(base, reg.RKey, 8, transport.RemoteRead))
	wrong := again
	wrong.LKey++
	require.Error(t, tab.Remove(s, wrong))
	require.NoError(t, tab.Remove(s, again))
}

func TestLimitOfRegistrations(t *testing.T) {
	tab := newTable(t, 3)
	s := sched.Process(1)
	r := mem.Of(make([]uint64, 64))
	var regs []transport.Region
	for range 3 {
		reg, err := tab.Add(r, transport.AllAccess)
		require.NoError(t, err)
		regs = append(regs, reg)
	}
	_, err := tab.Add(r, transport.AllAccess)
	var limit *transport.LimitError
	require.ErrorAs(t, err, &limit)
	require.Contains(t, err.Error(), "3 of 3")
	require.NoError(t, tab.Remove(s, regs[1]))
	_, err = tab.Add(mem.Range{}, transport.AllAccess)
	require.Error(t, err)
	regs[1], err = tab.Add(r, transport.AllAccess)
	require.NoError(t, err)
	require.ElementsMatch(t, regs, tab.Regions())
	for _, reg := range regs {
		require.NoError(t, tab.Remove(s, reg))
	}
	_, err = NewTable(tab.pins, MaxSlots+1)
	require.Error(t, err)
}

// TestRemoveWaits has a deregistration wait for who holds the region, and nobody enter meanwhile.
func TestRemoveWaits(t *testing.T) {
	tab := newTable(t, 3)
	s := sched.Process(1)
	r := mem.Of(make([]uint64, 64))
	reg, err := tab.Add(r, transport.AllAccess)
	require.NoError(t, err)
	_, h := tab.Hold(r.Addr(), reg.RKey, 8, transport.RemoteWrite)
	require.NotNil(t, h)
	local := tab.HoldLocal(r, reg.LKey, transport.LocalWrite)
	require.NotNil(t, local)
	var removed atomic.Bool
	done := make(chan error)
	go func() {
		err := tab.Remove(s, reg)
		removed.Store(true)
		done <- err
	}()
	time.Sleep(10 * time.Millisecond)
	require.False(t, removed.Load())
	require.Nil(t, tab.HoldLocal(r, reg.LKey, 0))
	h.Release()
	time.Sleep(5 * time.Millisecond)
	require.False(t, removed.Load())
	require.NotZero(t, tab.pins.Bytes(), "still locked")
	local.Release()
	require.NoError(t, <-done)
	require.Zero(t, tab.pins.Bytes())
}

// TestRevokeRace has movers use a key while its owner registers and deregisters: no byte is touched after Remove.
func TestRevokeRace(t *testing.T) {
	tab := newTable(t, 8)
	s := sched.Process(4)
	r := mem.Of(make([]uint64, 8))
	var key atomic.Uint64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for !stop.Load() {
				if m, h := tab.Hold(r.Addr(), key.Load(), 64, transport.RemoteWrite); h != nil {
					m.Word64(0).Add(1)
					h.Release()
				}
			}
		})
	}
	for range 2000 {
		reg, err := tab.Add(r, transport.AllAccess)
		require.NoError(t, err)
		key.Store(reg.RKey)
		require.NoError(t, tab.Remove(s, reg))
		before := r.Word64(0).Load()
		for range 20 {
			require.Equal(t, before, r.Word64(0).Load())
		}
	}
	stop.Store(true)
	wg.Wait()
}

func FuzzKeys(f *testing.F) {
	f.Add(uint64(0), uint64(0), 0, uint8(0))
	f.Add(uint64(1), ^uint64(0), 8, uint8(2))
	f.Add(uint64(1<<16), uint64(4096), 1<<40, uint8(15))
	pins, err := NewPins(1 << 20)
	require.NoError(f, err)
	tab, err := NewTable(pins, 16)
	require.NoError(f, err)
	heap := mem.Of(make([]byte, 4*os.Getpagesize()))
	var regs []transport.Region
	var mems []mem.Range
	for i := range 5 {
		m := heap.Slice(i*100, 1000*(i+1))
		reg, err := tab.Add(m, transport.Access(i*3))
		require.NoError(f, err)
		regs, mems = append(regs, reg), append(mems, m)
	}
	f.Fuzz(func(t *testing.T, flip, addr uint64, n int, need uint8) {
		for i, reg := range regs {
			for _, at := range []uint64{addr, heap.Addr() + addr%(1<<15)} {
				m, h := tab.Hold(at, reg.RKey^flip, n, transport.Access(need))
				if h == nil {
					continue
				}
				h.Release()
				require.Zero(t, flip, "a key that was never given out")
				require.True(t, n == 0 || m.Addr() == at)
				require.True(t, mems[i].Contains(m) && m.Bytes == n && n >= 0)
				require.Zero(t, need&^uint8(i*3))
			}
			require.False(t, flip != 0 && tab.Local(mems[i], reg.LKey^flip, 0))
		}
	})
}

func TestHotPathAllocatesNothing(t *testing.T) {
	tab := newTable(t, 8)
	r := mem.Of(make([]uint64, 512))
	reg, err := tab.Add(r, transport.AllAccess)
	require.NoError(t, err)
	sge := []transport.SGE{{Mem: r.Slice(0, 100)}, {Mem: r.Slice(200, 28)}}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if !tab.Local(r, reg.LKey, transport.LocalWrite) {
			panic("refused")
		}
		m, h := tab.Hold(r.Addr()+1024, reg.RKey, 128, transport.RemoteWrite)
		Gather(m, sge)
		Scatter(sge, m)
		Apply(transport.OpFetchAdd, m.Slice(0, 8), 1, 0)
		h.Release()
	}))
}

func BenchmarkHold(b *testing.B) {
	pins, err := NewPins(1 << 20)
	require.NoError(b, err)
	tab, err := NewTable(pins, 16)
	require.NoError(b, err)
	r := mem.Of(make([]uint64, 512))
	reg, err := tab.Add(r, transport.AllAccess)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		_, h := tab.Hold(r.Addr()+8, reg.RKey, 8, transport.RemoteWrite)
		h.Release()
	}
}

// BenchmarkRegister registers 64 KiB of memory that is there already.
func BenchmarkRegister(b *testing.B) {
	pins, err := NewPins(1 << 20)
	require.NoError(b, err)
	tab, err := NewTable(pins, 16)
	require.NoError(b, err)
	s := sched.Process(1)
	r := mem.Of(make([]byte, 64<<10))
	b.ReportAllocs()
	for b.Loop() {
		reg, err := tab.Add(r, transport.AllAccess)
		if err != nil {
			b.Fatal(err)
		}
		if err := tab.Remove(s, reg); err != nil {
			b.Fatal(err)
		}
	}
}
