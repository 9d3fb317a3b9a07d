package proto

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/transport/transporttest"
)

// TestCountsAreExact: what several goroutines do at once is counted to the last operation, by path and by target, whether it is counted under
// the lock or beside it.
func TestCountsAreExact(t *testing.T) {
	const goroutines, rounds, bytes = 4, 150, 200
	tm := newTeamWith(t, 2, 1<<16, transporttest.FabricConfig{}, nil, func(c *Config) { c.CountMapped = true })
	e, to := tm.e[0], &tm.of[0][1]
	before, nicBefore := e.Stats(), Count{}
	_, nicBefore = e.Flow(1)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			word, long := mem.Of(make([]uint64, 1)), mem.Of(make([]byte, bytes))
			off := g * 1024
			for range rounds {
				_, err := e.Atomic(atom.Sum, atom.Word64(), to, 32<<10, 1, 0)
				for _, err := range []error{err, e.Put(to, off, word), e.Get(to, off, word), e.Get(to, off, long)} {
					if err != nil {
						t.Error(err)
					}
				}
				if _, err := e.PutNB(to, off+8, word); err != nil {
					t.Error(err)
				}
			}
			if err := e.Flush(to); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	const each = goroutines * rounds
	after := e.Stats()
	for path, want := range map[Path]Count{
		PathInline:    {Ops: 2 * each, Bytes: 16 * each},
		PathBounce:    {Ops: 2 * each, Bytes: (8 + bytes) * each},
		PathNICAtomic: {Ops: each, Bytes: 8 * each},
	} {
		require.Equal(t, want.Ops, after[path].Ops-before[path].Ops, path)
		require.Equal(t, want.Bytes, after[path].Bytes-before[path].Bytes, path)
	}
	_, nicAfter := e.Flow(1)
	require.EqualValues(t, 5*each, nicAfter.Ops-nicBefore.Ops)
	require.EqualValues(t, (8+16+8+bytes)*each, nicAfter.Bytes-nicBefore.Bytes)
}
