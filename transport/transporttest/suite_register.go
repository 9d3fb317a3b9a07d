package transporttest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

var registerChecks = []check{
	{"Register/keys", testKeys},
	{"Register/overlapping", testOverlap},
	{"Register/limit of registrations", testMaxRegions},
	{"Register/limit of bytes", testMaxPinned},
	{"Register/over and over", testRegisterOften},
	{"Deregister/unknown", testDeregisterUnknown},
}

func testKeys(t *testing.T, s *suite) {
	a := s.rig(t, 1, 1<<16).nodes[0]
	ids, keys := map[uint64]bool{a.reg.ID: true}, map[uint64]bool{a.reg.RKey: true}
	for i := range 100 {
		if s.caps.MaxRegions > 0 && len(ids) >= s.caps.MaxRegions {
			break
		}
		reg, err := a.d.Register(a.mem.Slice(i*64, 64), transport.AllAccess)
		require.NoError(t, err)
		require.False(t, ids[reg.ID], "one ID twice")
		require.False(t, keys[reg.RKey], "one RKey twice")
		ids[reg.ID], keys[reg.RKey] = true, true
	}
	_, err := a.d.Register(mem.Range{}, transport.AllAccess)
	require.Error(t, err, "a range of no bytes")
}

// testOverlap ends one of two registrations of the same bytes; the other goes on.
func testOverlap(t *testing.T, s *suite) {
	a, b := s.pair(t, 16384)
	first, err := b.d.Register(b.mem.Slice(0, 8192), transport.AllAccess)
	require.NoError(t, err)
	second, err := b.d.Register(b.mem.Slice(4096, 8192), transport.AllAccess)
	require.NoError(t, err)
	write := func(key uint64) transport.Status {
		op := a.op(transport.OpWrite, 1, 0, 4096, 4096)
		op.RKey = key
		return a.do(op).Status
	}
	require.Equal(t, transport.StatusOK, write(first.RKey))
	require.Equal(t, transport.StatusOK, write(second.RKey))
	require.NoError(t, b.d.Deregister(first))
	require.Equal(t, transport.StatusOK, write(second.RKey))
	require.Equal(t, transport.StatusRemoteAccess, write(first.RKey))
	a.redial(1)
	require.Equal(t, transport.StatusOK, write(second.RKey))
}

// requireLimit checks that an error says which limit, and what to do.
func requireLimit(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, transport.ErrLimit)
	var limit *transport.LimitError
	require.True(t, errors.As(err, &limit), "%T", err)
	require.NotEmpty(t, limit.What)
	require.NotEmpty(t, limit.Found)
	require.NotEmpty(t, limit.Needed)
	require.NotEmpty(t, limit.Setting)
}

func testMaxRegions(t *testing.T, s *suite) {
	need(t, s.caps.MaxRegions > 0 && s.caps.MaxRegions <= 1<<16, "limit of registrations small enough to reach")
	a := s.rig(t, 1, 1<<16).nodes[0]
	var regs []transport.Region
	for len(regs)+1 < s.caps.MaxRegions {
		reg, err := a.d.Register(a.mem.Slice(len(regs)%1024*64, 64), transport.AllAccess)
		require.NoError(t, err, "registration %d of %d", len(regs)+2, s.caps.MaxRegions)
		regs = append(regs, reg)
	}
	_, err := a.d.Register(a.mem.Slice(0, 64), transport.AllAccess)
	requireLimit(t, err)
	require.NoError(t, a.d.Deregister(regs[0]))
	regs[0], err = a.d.Register(a.mem.Slice(0, 64), transport.AllAccess)
	require.NoError(t, err)
	a.must(a.op(transport.OpWrite, 0, 0, 64, 64))
}

func testMaxPinned(t *testing.T, s *suite) {
	need(t, s.caps.MaxPinned > 0 && s.caps.MaxPinned <= 64<<20, "limit of registered bytes small enough to reach")
	a := s.rig(t, 1, 4096).nodes[0]
	big := s.opt.Alloc(t, int(s.caps.MaxPinned))
	_, err := a.d.Register(big, transport.AllAccess)
	requireLimit(t, err)
	half := big.Slice(0, big.Bytes/2)
	reg, err := a.d.Register(half, transport.AllAccess)
	require.NoError(t, err)
	require.NoError(t, a.d.Deregister(reg))
	reg, err = a.d.Register(half, transport.AllAccess)
	require.NoError(t, err, "the bytes of an ended registration count no more")
	require.NoError(t, a.d.Deregister(reg))
}

// testRegisterOften registers far more often than anything has room for, from several goroutines.
func testRegisterOften(t *testing.T, s *suite) {
	a, b := s.pair(t, 1<<16)
	together(t, 4, func(i int) error {
		for k := range s.opt.Ops {
			reg, err := b.d.Register(b.mem.Slice(i*8192+k%64*64, 4096), transport.AllAccess)
			if err != nil {
				return fmt.Errorf("registration %d: %w", k, err)
			}
			if err := b.d.Deregister(reg); err != nil {
				return fmt.Errorf("end of registration %d: %w", k, err)
			}
		}
		return nil
	})
	a.must(a.op(transport.OpWrite, 1, 0, 0, 4096))
}

func testDeregisterUnknown(t *testing.T, s *suite) {
	a := s.rig(t, 1, 4096).nodes[0]
	require.Error(t, a.d.Deregister(transport.Region{ID: 1 << 40, LKey: 1 << 40, RKey: 1 << 40}))
	reg, err := a.d.Register(a.mem.Slice(0, 64), transport.AllAccess)
	require.NoError(t, err)
	require.NoError(t, a.d.Deregister(reg))
	require.Error(t, a.d.Deregister(reg), "a registration ends once")
	a.must(a.op(transport.OpWrite, 0, 0, 64, 64))
}
