package proto

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// muted is a domain that reports nothing while held is set.
type muted struct {
	transport.Domain
	held atomic.Bool
}

func (m *muted) Poll(cq []transport.Completion) (int, error) {
	if m.held.Load() {
		return 0, nil
	}
	return m.Domain.Poll(cq)
}

// TestBefore: an atomic may follow sums that are under way without a flush, and nothing else: a put could be put once more behind it.
func TestBefore(t *testing.T) {
	var m *muted
	tm := newTeamOf(t, 2, 1<<12, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { m = &muted{Domain: d}; return m })
	e, to := tm.e[0], &tm.of[0][1]
	one := mem.Of([]uint64{1})
	sum := func() error { return e.Accumulate(atom.Sum, atom.Word64(), to, 0, one) }
	require.NoError(t, sum())
	require.NoError(t, e.Flush(to))
	for _, c := range []struct {
		name  string
		begin func() error
		want  bool
	}{
		{"nothing", func() error { return nil }, true},
		{"sums", func() error { require.NoError(t, sum()); return sum() }, true},
		{"a put", func() error { require.NoError(t, sum()); return e.Put(to, 8, one) }, false},
		{"a get", func() error { _, err := e.GetNB(to, 8, mem.Of(make([]uint64, 1))); return err }, false},
		{"an atomic with a handle", func() error {
			_, err := e.AtomicNB(atom.Sum, atom.Word64(), to, 8, 1, 0, mem.Of(make([]uint64, 1)))
			return err
		}, false},
		{"an accumulate by the target's CPU", func() error { return e.Accumulate(atom.Max, atom.Word64(), to, 8, one) }, false},
		{"sums again", sum, true},
	} {
		m.held.Store(true)
		require.NoError(t, c.begin(), c.name)
		require.Equal(t, c.want, e.Before(to, to), c.name)
		m.held.Store(false)
		m.Wake()
		require.NoError(t, e.Flush(to), c.name)
	}
	got, err := e.Load64(to, 0)
	require.NoError(t, err)
	require.EqualValues(t, 5, got)
}
