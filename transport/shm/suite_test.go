package shm

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// runMapperSuite is what every transport.Mapper must do. newRanks returns the mappers of n ranks of one node.
// It closes them.
func runMapperSuite(t *testing.T, newRanks func(n int) []transport.Mapper) {
	ranks := func(t *testing.T, n int) []transport.Mapper {
		all := newRanks(n)
		require.Len(t, all, n)
		t.Cleanup(func() {
			for _, m := range all {
				_ = m.Close() // a case may have closed it
			}
		})
		return all
	}
	alloc := func(t *testing.T, m transport.Mapper, bytes int) (mem.Range, transport.Token) {
		r, tok, err := m.Alloc(bytes)
		require.NoError(t, err)
		return r, tok
	}
	mapped := func(t *testing.T, m transport.Mapper, tok transport.Token) mem.Range {
		r, err := m.Map(tok)
		require.NoError(t, err)
		return r
	}

	t.Run("name", func(t *testing.T) {
		require.Equal(t, "shm", ranks(t, 1)[0].Name())
	})
	t.Run("alloc is zeroed, aligned and as long as asked for", func(t *testing.T) {
		m := ranks(t, 1)[0]
		for _, bytes := range []int{1, 8, 4095, 4096, 4097, 1 << 20, 3<<20 + 5} {
			r, tok := alloc(t, m, bytes)
			require.Equal(t, bytes, r.Bytes)
			require.Zero(t, r.Addr()%uint64(os.Getpagesize()))
			require.NotEmpty(t, tok)
			for i, b := range r.Data() {
				if b != 0 {
					t.Fatalf("byte %d of %d is %d", i, bytes, b)
				}
				r.Data()[i] = 0xff // what is freed dirty must come back clean
			}
			require.NoError(t, m.Free(r))
		}
	})
	t.Run("sizes out of range", func(t *testing.T) {
		m := ranks(t, 1)[0]
		for _, bytes := range []int{0, -1, 1<<62 + 1} {
			_, _, err := m.Alloc(bytes)
			require.Error(t, err, "%d bytes", bytes)
		}
	})
	t.Run("more than any machine has is a limit", func(t *testing.T) {
		m := ranks(t, 1)[0]
		_, _, err := m.Alloc(1 << 46)
		var limit *transport.LimitError
		require.ErrorAs(t, err, &limit)
		require.ErrorIs(t, err, transport.ErrLimit)
		for _, s := range []string{limit.What, limit.Found, limit.Needed, limit.Setting} {
			require.NotEmpty(t, s)
		}
		r, _ := alloc(t, m, 4096) // and it goes on
		require.NoError(t, m.Free(r))
	})
	t.Run("what one writes the other reads, both ways", func(t *testing.T) {
		all := ranks(t, 2)
		own, tok := alloc(t, all[0], 100_000)
		peer := mapped(t, all[1], tok)
		require.Equal(t, own.Bytes, peer.Bytes)
		own.Data()[0], own.Data()[99_999] = 1, 2
		require.Equal(t, []byte{1, 2}, []byte{peer.Data()[0], peer.Data()[99_999]})
		peer.Data()[50_000] = 3
		require.Equal(t, byte(3), own.Data()[50_000])
		require.NoError(t, all[1].Unmap(peer))
		require.Equal(t, byte(3), own.Data()[50_000])
	})
	t.Run("atomics of all ranks on one word", func(t *testing.T) {
		const n, rounds = 4, 20_000
		all := ranks(t, n)
		own, tok := alloc(t, all[0], 64)
		var wg sync.WaitGroup
		for _, m := range all {
			r := own
			if m != all[0] {
				r = mapped(t, m, tok)
			}
			wg.Go(func() {
				for range rounds {
					r.Word64(8).Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, n*rounds, own.Word64(8).Load())
	})
	t.Run("a rank maps its own memory", func(t *testing.T) {
		m := ranks(t, 1)[0]
		own, tok := alloc(t, m, 4096)
		again := mapped(t, m, tok)
		own.Data()[7] = 7
		require.Equal(t, byte(7), again.Data()[7])
		require.NoError(t, m.Unmap(again))
		require.NoError(t, m.Free(own))
	})
	t.Run("mapped twice, unmapped twice", func(t *testing.T) {
		all := ranks(t, 2)
		own, tok := alloc(t, all[0], 4096)
		a, b := mapped(t, all[1], tok), mapped(t, all[1], tok)
		require.NoError(t, all[1].Unmap(a))
		own.Data()[1] = 9
		require.Equal(t, byte(9), b.Data()[1])
		require.NoError(t, all[1].Unmap(b))
		require.Error(t, all[1].Unmap(b))
	})
	t.Run("freed memory stays for who has it, and is mapped by nobody else", func(t *testing.T) {
		all := ranks(t, 2)
		own, tok := alloc(t, all[0], 8192)
		peer := mapped(t, all[1], tok)
		own.Data()[8191] = 5
		require.NoError(t, all[0].Free(own))
		require.Equal(t, byte(5), peer.Data()[8191])
		peer.Data()[0] = 6
		_, err := all[1].Map(tok)
		require.ErrorIs(t, err, transport.ErrUnsupported)
		require.NoError(t, all[1].Unmap(peer))
	})
	t.Run("only what is held can be given back", func(t *testing.T) {
		all := ranks(t, 2)
		own, tok := alloc(t, all[0], 8192)
		peer := mapped(t, all[1], tok)
		require.Error(t, all[1].Free(peer), "a mapping is not the peer's to free")
		require.Error(t, all[0].Unmap(own), "own memory is not a mapping")
		require.Error(t, all[0].Free(own.Slice(0, 4096)), "a part")
		require.Error(t, all[0].Free(own.Slice(4096, 4096)), "a part")
		require.Error(t, all[1].Unmap(peer.Slice(0, 1)), "a part")
		require.Error(t, all[0].Free(mem.Range{}))
		require.Error(t, all[0].Unmap(mem.Range{}))
		require.NoError(t, all[0].Free(own))
		require.Error(t, all[0].Free(own), "twice")
		require.NoError(t, all[1].Unmap(peer))
	})
	t.Run("tokens that nobody made", func(t *testing.T) {
		m := ranks(t, 1)[0]
		_, tok := alloc(t, m, 4096)
		for _, bad := range []transport.Token{nil, {}, {1}, tok[:len(tok)-1], append(tok[:len(tok):len(tok)], 0), make(transport.Token, len(tok))} {
			_, err := m.Map(bad)
			require.Error(t, err, "%x", bad)
		}
		other := ranks(t, 1)[0] // knows nothing of the first where ranks are goroutines
		for i := range tok {
			changed := append(transport.Token(nil), tok...)
			changed[i] ^= 0x81
			if r, err := other.Map(changed); err == nil { // bytes of a way that was not needed
				require.Equal(t, 4096, r.Bytes)
				require.NoError(t, other.Unmap(r))
			}
		}
	})
	t.Run("after close", func(t *testing.T) {
		all := ranks(t, 2)
		own, tok := alloc(t, all[0], 4096)
		peer := mapped(t, all[1], tok)
		_, tok1 := alloc(t, all[1], 4096)
		own.Data()[0] = 1
		require.NoError(t, all[0].Close())
		require.Equal(t, byte(1), peer.Data()[0], "the peer's mapping stays")
		_, err := all[1].Map(tok)
		require.ErrorIs(t, err, transport.ErrUnsupported)
		_, _, err = all[0].Alloc(1)
		require.ErrorIs(t, err, transport.ErrClosed)
		_, err = all[0].Map(tok1)
		require.ErrorIs(t, err, transport.ErrClosed)
		require.ErrorIs(t, all[0].Free(own), transport.ErrClosed)
		require.ErrorIs(t, all[0].Unmap(own), transport.ErrClosed)
		require.ErrorIs(t, all[0].Close(), transport.ErrClosed)
	})
	t.Run("many goroutines of many ranks", func(t *testing.T) {
		const n, each, rounds = 3, 4, 25
		all := ranks(t, n)
		errs := make(chan error, n*each)
		for i := range n * each {
			own, peer := all[i%n], all[(i+1)%n]
			go func() {
				for k := range rounds {
					if err := roundTrip(own, peer, 4096*(1+k%5), byte(i)); err != nil {
						errs <- fmt.Errorf("goroutine %d, round %d: %w", i, k, err)
						return
					}
				}
				errs <- nil
			}()
		}
		for range n * each {
			require.NoError(t, <-errs)
		}
	})
	t.Run("close beside everything else", func(t *testing.T) {
		for range 20 {
			all := ranks(t, 2)
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					for untouched(all[i%2], all[1-i%2]) == nil {
					}
				})
			}
			runtime.Gosched()
			require.NoError(t, all[0].Close())
			wg.Wait()
			require.NoError(t, all[1].Close())
		}
	})
}

func roundTrip(own, peer transport.Mapper, bytes int, mark byte) error {
	r, tok, err := own.Alloc(bytes)
	if err != nil {
		return err
	}
	p, err := peer.Map(tok)
	if err != nil {
		return err
	}
	r.Data()[bytes-1] = mark
	if got := p.Data()[bytes-1]; got != mark {
		return fmt.Errorf("read %d, want %d", got, mark)
	}
	if err := peer.Unmap(p); err != nil {
		return err
	}
	return own.Free(r)
}

// untouched is roundTrip without a look at the memory, which Close may take away.
func untouched(own, peer transport.Mapper) error {
	r, tok, err := own.Alloc(4096)
	if err != nil {
		return err
	}
	p, err := peer.Map(tok)
	if err != nil {
		return err
	}
	return errors.Join(peer.Unmap(p), own.Free(r))
}

func TestLocal(t *testing.T) {
	runMapperSuite(t, func(n int) []transport.Mapper {
		var all []transport.Mapper
		for _, l := range NewGroup(n, Config{What: "test"}) {
			all = append(all, l)
		}
		return all
	})
}

// TestTwice: the same of memory that can be mapped a second time, which is unmapped when the last mapper has let go.
func TestTwice(t *testing.T) {
	runMapperSuite(t, func(n int) []transport.Mapper {
		var all []transport.Mapper
		for _, l := range NewGroup(n, Config{What: "test", Twice: true}) {
			all = append(all, l)
		}
		return all
	})
	g := NewGroup(2, Config{Twice: true})
	own, tok, err := g[0].Alloc(100)
	require.NoError(t, err)
	if mem.OriginOf(own) == mem.Heap {
		require.NotEqual(t, "linux amd64", runtime.GOOS+" "+runtime.GOARCH)
		return
	}
	peer, err := g[1].Map(tok)
	require.NoError(t, err)
	require.Equal(t, own, peer)
	again, err := g[1].Map(tok)
	require.NoError(t, err)
	mapped := func() bool {
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		for l := range strings.Lines(string(maps)) {
			if strings.HasPrefix(l, fmt.Sprintf("%x-", own.Addr())) && strings.Contains(l, "/dev/zero") { // as the kernel calls it
				return true
			}
		}
		return false
	}
	require.True(t, mapped())
	require.NoError(t, g[0].Free(own))
	require.NoError(t, g[1].Unmap(again))
	require.True(t, mapped(), "the peer has it mapped")
	require.NoError(t, g[1].Close())
	require.False(t, mapped(), "nobody has it")
}

func TestLocalMapsTheSameMemory(t *testing.T) {
	g := NewGroup(2, Config{})
	own, tok, err := g[0].Alloc(100)
	require.NoError(t, err)
	peer, err := g[1].Map(tok)
	require.NoError(t, err)
	require.Equal(t, own, peer)
	require.Equal(t, Stats{Allocs: 1, AllocBytes: 100}, g[0].Stats())
	require.Equal(t, Stats{Maps: 1, MapBytes: 100}, g[1].Stats())
}

func TestLocalGroupsAreApart(t *testing.T) {
	a, b := NewGroup(1, Config{})[0], NewGroup(1, Config{})[0]
	_, tokA, err := a.Alloc(10)
	require.NoError(t, err)
	_, _, err = b.Alloc(10)
	require.NoError(t, err)
	_, err = b.Map(tokA)
	require.ErrorIs(t, err, transport.ErrUnsupported)
	require.ErrorContains(t, err, "another group")
}

// TestLocalMemoryIsCollected follows a block through owner and peer: the collector may take it only when both
// have let go.
func TestLocalMemoryIsCollected(t *testing.T) {
	g := NewGroup(2, Config{})
	own, tok, err := g[0].Alloc(1 << 20)
	require.NoError(t, err)
	w := weak.Make(&own.Data()[0])
	peer, err := g[1].Map(tok)
	require.NoError(t, err)
	require.NoError(t, g[0].Free(own))
	own = mem.Range{}
	collect := func() bool {
		for range 3 {
			runtime.GC()
		}
		return w.Value() == nil
	}
	require.False(t, collect(), "the peer has it mapped")
	require.NoError(t, g[1].Unmap(peer))
	peer = mem.Range{}
	require.True(t, collect(), "nobody has it")
	require.Zero(t, own.Bytes+peer.Bytes)
}
