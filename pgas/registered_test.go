package pgas_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/regmgr"
	pgsync "gopgas/sync"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// TestTransfersUnderEveryPolicy: whatever is registered, refused or copied on the way, what arrives is what was sent.
func TestTransfersUnderEveryPolicy(t *testing.T) {
	const whole = 5 << 18
	for _, nic := range []struct {
		name   string
		fabric transporttest.FabricConfig
		limit  int64
	}{
		{name: "plenty"},
		{name: "16 pages", limit: 16 * 4096},
		{name: "small messages, few registrations", fabric: transporttest.FabricConfig{MaxMessage: 100_000, MaxRegions: 40, MaxPost: 8}},
		{name: "a NIC that pins little", fabric: transporttest.FabricConfig{MaxPinned: whole + 6<<20}, limit: 1 << 40},
	} {
		for _, policy := range []regmgr.Policy{
			regmgr.LeavePinned, regmgr.Bounce, regmgr.OnDemand, regmgr.LeavePinnedNoEvict, regmgr.Pipelined, regmgr.PipelinedLeavePinned, regmgr.Predictive,
		} {
			t.Run(nic.name+"/"+policy.String(), func(t *testing.T) {
				c := pgastest.Config{NIC: true, Fabric: nic.fabric, Reg: policy.String(), RegLimit: nic.limit, RegLeast: 8192}
				pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
					return transfers(ctx, t, w, whole, policy == regmgr.LeavePinnedNoEvict)
				})
			})
		}
	}
}

// transfers puts and gets parts of many sizes to and from the other rank. mayFail: at a limit, with the error that says so.
func transfers(ctx context.Context, t *testing.T, w *pgas.World, whole int, mayFail bool) error {
	win, err := window.Allocate[byte](ctx, w.Team(), whole)
	if err != nil {
		return err
	}
	other := 1 - w.Rank()
	rng := rand.New(rand.NewPCG(1, uint64(w.Rank())))
	src, back := make([]byte, whole), make([]byte, whole)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	sizes := []int{1, 5000, 9000, 70_000, 300_001, whole - 4096}
	failed := false
	check := func(err error) bool {
		if err != nil {
			require.True(t, mayFail, "%v", err)
			require.ErrorIs(t, err, regmgr.ErrBudget)
			failed = true
		}
		return err == nil
	}
	for i := range 18 {
		n := sizes[i%len(sizes)]
		off := rng.IntN(whole - n)
		clear(back[off : off+n])
		if i%2 == 0 {
			if !check(win.Put(other, off, src[off:off+n])) {
				continue
			}
		} else {
			h, err := win.PutNB(other, off, src[off:off+n])
			if !check(err) {
				continue
			}
			if err := h.Wait(ctx); err != nil {
				return err
			}
		}
		if err := win.Flush(other); err != nil {
			return err
		}
		if i%3 == 0 {
			h, err := win.GetNB(other, off, back[off:off+n])
			if !check(err) {
				continue
			}
			if err := h.Wait(ctx); err != nil {
				return err
			}
		} else if !check(win.Get(other, off, back[off:off+n])) {
			continue
		}
		if !bytes.Equal(src[off:off+n], back[off:off+n]) {
			return fmt.Errorf("transfer %d of %d bytes brought back other bytes", i, n)
		}
	}
	s, refused := w.Registered()
	if s.CopiedBudget+s.CopiedRefused > 0 || failed {
		require.Error(t, refused, "it is reported")
	}
	switch s.Policy {
	case "bounce":
		require.Zero(t, s.Registrations)
		require.Zero(t, w.Stats()["loopback"]["zero-copy"].Ops)
	case "predictive":
		// The helper registers for uses that it expects, and gives up in the end that they come. What its full queue has
		// lost it does not know of: that stays until room is needed.
		if !eventually(20*time.Second, func() bool {
			s, _ = w.Registered()
			return s.Bytes == 0 || s.Prediction.LostDQ > 0 && s.Idle == s.Bytes
		}) {
			return fmt.Errorf("still registered: %+v", s)
		}
	case "ondemand", "pipelined":
		require.Zero(t, s.Bytes, "nothing stays")
	}
	if s.CopiedBudget+s.CopiedRefused == 0 && s.Policy != "bounce" && !mayFail {
		require.Positive(t, w.Stats()["loopback"]["zero-copy"].Ops)
		require.NoError(t, refused)
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	return win.Free(ctx)
}

// TestReadOnlyDestination: what is brought through buffers is not copied to where it cannot be written; nothing has moved
// then, and a page between two runs may be what it is.
func TestReadOnlyDestination(t *testing.T) {
	const n, page = 1 << 16, 1 << 12
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[uint32](ctx, w.Team(), n/4)
		if err != nil {
			return err
		}
		b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return err
		}
		m := mem.Slice[uint32](mem.Of(b))
		require.NoError(t, unix.Mprotect(b[page:], unix.PROT_READ))
		require.NoError(t, unix.Mprotect(b[2*page:3*page], unix.PROT_READ|unix.PROT_WRITE))
		other, third := 1-w.Rank(), m[page/4:page/4+3]
		rows := func(stride int) window.Section {
			return window.Section{Rows: 2, Cols: 2, Stride: 2, Step: 1, NearStride: stride, NearStep: 1}
		}
		get := map[string]func() error{
			"word":     func() error { return win.Get(other, 0, third[:1]) },
			"page":     func() error { return win.Get(other, 0, m[page/4-1:page/4+page/4]) },
			"all":      func() error { return win.Get(other, 0, m) },
			"sections": func() error { return win.GetSection(other, 0, m, rows(page/4)) },
			"word, NB": func() error { _, err := win.GetNB(other, 0, third); return err },
			"all, NB":  func() error { _, err := win.GetNB(other, 0, m); return err },
			"sections, NB": func() error {
				_, err := win.GetSectionNB(other, 0, m, rows(page/4))
				return err
			},
			"accumulate": func() error { return window.GetAccumulate(win, other, 0, third, third, pgsync.Sum) },
		}
		for name, f := range get {
			require.ErrorIs(t, f(), regmgr.ErrReadOnly, name)
		}
		require.NoError(t, win.Get(other, 0, m[:page/4]))
		require.NoError(t, win.GetSection(other, 0, m, rows(2*page/4)))
		require.NoError(t, win.Fence(ctx)) // nothing was added
		require.Zero(t, win.Local()[0])
		require.NoError(t, win.Fence(ctx))
		require.NoError(t, unix.Munmap(b))
		return win.Free(ctx)
	})
}

// TestMemoryThatIsNotGos: a read-only mapping is a source and no destination; a mapping's registration ends with the
// transfer, or with its lifetime; a stack is copied.
func TestMemoryThatIsNotGos(t *testing.T) {
	const n = 200_000
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Bulk: "superpipe"}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[byte](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		m, err := unix.Mmap(-1, 0, n, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return err
		}
		other := 1 - w.Rank()
		require.NoError(t, win.Put(other, 0, m))
		require.NoError(t, win.Fence(ctx))
		require.ErrorIs(t, win.Get(other, 0, m), regmgr.ErrReadOnly)
		_, err = win.GetNB(other, 0, m)
		require.ErrorIs(t, err, regmgr.ErrReadOnly)
		require.NoError(t, unix.Munmap(m)) // nothing looks at it any more
		if err := win.Fence(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	})
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Bulk: "register"}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[byte](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return err
		}
		for i := range m {
			m[i] = byte(i * 7)
		}
		require.NoError(t, unix.Mprotect(m, unix.PROT_READ))
		other := 1 - w.Rank()
		require.NoError(t, win.Put(other, 0, m))
		require.NoError(t, win.Fence(ctx))
		require.Equal(t, m, win.Local())
		require.NoError(t, win.Fence(ctx)) // the other rank has compared too, before anything else is put there
		s, _ := w.Registered()
		require.Equal(t, uint64(1), s.Registrations)
		require.Zero(t, s.Bytes)
		require.ErrorIs(t, win.Get(other, 0, m), regmgr.ErrReadOnly)
		_, err = win.GetNB(other, 0, m)
		require.ErrorIs(t, err, regmgr.ErrReadOnly)

		life, err := w.KeepRegistered(m)
		require.NoError(t, err)
		require.NoError(t, win.Put(other, 0, m))
		require.NoError(t, win.Put(other, 0, m[:100_000]))
		s, _ = w.Registered()
		require.Equal(t, [2]uint64{2, 1}, [2]uint64{s.Registrations, s.Hits})
		life.End()
		s, _ = w.Registered()
		require.Zero(t, s.Bytes)
		require.NoError(t, unix.Munmap(m))

		var local [100_000]byte
		require.NoError(t, win.Put(other, 0, local[:]))
		s, _ = w.Registered()
		require.Equal(t, uint64(1), s.CopiedOrigin)
		if err := win.Fence(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	})
}

// TestLargePutAllocatesNothing: from registered memory as from the bounce buffers.
func TestLargePutAllocatesNothing(t *testing.T) {
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Bulk: "superpipe"}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[byte](ctx, w.Team(), 1<<20)
		if err != nil {
			return err
		}
		if w.Rank() == 0 && !raceEnabled {
			src := make([]byte, 1<<20)
			require.NoError(t, win.Put(1, 0, src))
			got := testing.AllocsPerRun(50, func() {
				_ = win.Put(1, 0, src)
				_ = win.Get(1, 0, src)
			})
			require.Less(t, got, 1.0)
			require.EqualValues(t, 103, w.Stats()["loopback"]["superpipe"].Ops)
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	})
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Bulk: "register"}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[byte](ctx, w.Team(), 1<<20)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			src := make([]byte, 1<<20)
			require.NoError(t, win.Put(1, 0, src))
			before, _ := w.Registered()
			got := testing.AllocsPerRun(50, func() {
				_ = win.Put(1, 0, src)
				_ = win.Get(1, 0, src)
			})
			require.Less(t, got, 1.0)
			after, _ := w.Registered()
			require.Equal(t, before.Registrations, after.Registrations)
			require.Equal(t, before.Hits+102, after.Hits)
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	})
}

func TestRegistrationSettings(t *testing.T) {
	c, err := pgas.FromEnvironment([]string{"PGAS_REG=ondemand", "PGAS_REG_LIMIT=64M", "PGAS_REG_THRESHOLD=32K"})
	require.NoError(t, err)
	require.Equal(t, "ondemand", c.Reg)
	require.Equal(t, int64(64<<20), c.RegLimit)
	require.Equal(t, int64(32<<10), c.RegThreshold)
	file := filepath.Join(t.TempDir(), "costs")
	require.NoError(t, os.WriteFile(file, []byte("{}"), 0o600))
	for _, good := range []string{"window=0", "window=4,age=3", "age=0", "periodicity=1024"} {
		c, err = pgas.FromEnvironment([]string{"PGAS_PREDICT=" + good})
		require.NoError(t, err)
		require.Equal(t, good, c.Predict)
	}
	c, err = pgas.FromEnvironment([]string{"PGAS_CALIBRATION=helper-threads"})
	require.NoError(t, err)
	require.Equal(t, "helper-threads", c.Calibration)
	for _, bad := range []string{
		"PGAS_CALIBRATION=nonexistent", "PGAS_CALIBRATION=" + file, "PGAS_REG=magic", "PGAS_REG_LIMIT=much", "PGAS_REG_THRESHOLD=-1",
		"PGAS_PREDICT=window=5", "PGAS_PREDICT=window", "PGAS_PREDICT=age=-1", "PGAS_PREDICT=periodicity=7", "PGAS_PREDICT=window=2,window=2",
		"PGAS_PREDICT=window=2,periodicity=64", "PGAS_PREDICT=luck=3", "PGAS_IDLE_CORES=some", "PGAS_TRANSPORT=post",
	} {
		requireRefused(t, bad)
	}
}

// requireRefused: a setting is refused, by an error that names the variable first and quotes the value, or the part of it that is wrong, once.
func requireRefused(t *testing.T, setting string) {
	t.Helper()
	_, err := pgas.FromEnvironment([]string{setting})
	require.ErrorIs(t, err, pgas.ErrConfig, setting)
	name, value, _ := strings.Cut(setting, "=")
	require.Contains(t, err.Error(), name)
	wrong, _, _ := strings.Cut(err.Error(), "want") // what is wanted may contain it, as a word
	require.LessOrEqual(t, strings.Count(wrong, value), 1, err.Error())
}

func TestProtocolSettings(t *testing.T) {
	c, err := pgas.FromEnvironment([]string{"PGAS_EAGER=bypass", "PGAS_EAGER_PERCENT=50", "PGAS_BULK=flat", "PGAS_LEASES=-1"})
	require.NoError(t, err)
	require.Equal(t, "bypass", c.Eager)
	require.Equal(t, 50, c.EagerPercent)
	require.Equal(t, "flat", c.Bulk)
	require.Equal(t, -1, c.Leases)
	for _, bad := range []string{"PGAS_EAGER=magic", "PGAS_EAGER_PERCENT=0", "PGAS_EAGER_PERCENT=101", "PGAS_EAGER_PERCENT=half", "PGAS_BULK=magic", "PGAS_LEASES=many", "PGAS_LEASES=257"} {
		requireRefused(t, bad)
	}
}

// TestRefusalIsSaidOnce: a program that asks nobody learns at the end that transfers were copied, why, and what to do.
func TestRefusalIsSaidOnce(t *testing.T) {
	var mu sync.Mutex
	var said []string
	c := pgastest.Config{NIC: true, Reg: "ondemand", RegLimit: 16 * 4096, Say: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, line)
	}}
	pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[byte](ctx, w.Team(), 1<<18)
		if err != nil {
			return err
		}
		if src := make([]byte, 1<<18); w.Rank() == 1 {
			for range 3 {
				if err := win.Put(0, 0, src); err != nil {
					return err
				}
			}
		}
		return win.Free(ctx)
	})
	require.Len(t, said, 1)
	for _, word := range []string{"rank 1: ", "262144 bytes", "limit 65536", "PGAS_REG_LIMIT", "for want of room: 3"} {
		require.Contains(t, said[0], word)
	}
}

func eventually(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// TestStatsOfBuckets: what firehose has done is among the statistics that a rank sends, in bytes and counts that agree.
func TestStatsOfBuckets(t *testing.T) {
	const bytes = 8 << 20
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{MaxPinned: 4 << 20}, Reg: "predictive"}
	pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Create(ctx, w.Team(), make([]byte, bytes))
		if err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		for range 3 {
			for at := 0; at < bytes; at += 1 << 16 {
				if err := win.Put(1-w.Rank(), at, []byte{1}); err != nil {
					return err
				}
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		s := pgas.ExtraStats(w)
		require.Positive(t, s["hose.misses"]+s["hose.ahead"])
		require.Positive(t, s["hose.moves"], "more was used than may be held")
		require.Positive(t, s["hose.told"]+s["hose.untold"], "of which the helper may learn")
		require.Positive(t, s["hose.served.victims"])
		require.Positive(t, s["hose.bytes"])
		require.Positive(t, s["reg.lent"])
		require.Zero(t, s["reg.peak"]+s["reg.average"], "of its own transfers, of which none was large")
		require.LessOrEqual(t, s["hose.served.bytes"], s["hose.served.peak"])
		require.GreaterOrEqual(t, s["reg.bytes"], s["reg.lent"])
		require.EqualValues(t, 1, s["reg.helper"])
		return win.Free(ctx)
	})
}
