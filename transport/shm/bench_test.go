//go:build linux

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var benchSizes = []int{64 << 10, 64 << 20}

func BenchmarkAllocFree(b *testing.B) {
	for _, ways := range []Ways{WayMemfd, WayFile} {
		for _, bytes := range benchSizes {
			b.Run(ways.String()+"/"+size(int64(bytes)), func(b *testing.B) {
				m, err := Open(Config{Ways: ways})
				require.NoError(b, err)
				defer m.Close()
				b.ReportAllocs()
				for b.Loop() {
					r, _, err := m.Alloc(bytes)
					if err == nil {
						err = m.Free(r)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkMapUnmap(b *testing.B) {
	for _, ways := range []Ways{WayProc, WaySocket} {
		for _, bytes := range benchSizes {
			b.Run(ways.String()+"/"+size(int64(bytes)), func(b *testing.B) {
				owner, err := Open(Config{Ways: ways})
				require.NoError(b, err)
				defer owner.Close()
				peer, err := Open(Config{Ways: ways})
				require.NoError(b, err)
				defer peer.Close()
				_, tok, err := owner.Alloc(bytes)
				require.NoError(b, err)
				b.ReportAllocs()
				for b.Loop() {
					r, err := peer.Map(tok)
					if err == nil {
						err = peer.Unmap(r)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkLocal(b *testing.B) {
	g := NewGroup(2, Config{})
	b.ReportAllocs()
	for b.Loop() {
		if err := roundTrip(g[0], g[1], 64<<10, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadLimits(b *testing.B) {
	for b.Loop() {
		if l := ReadLimits(Roots{}); l.Available == Unlimited {
			b.Fatal("no memory")
		}
	}
}
