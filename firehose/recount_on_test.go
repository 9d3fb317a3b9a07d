//go:build invariants

package firehose

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecounts: a build that checks invariants finds a sum that is wrong, at either end.
func TestRecounts(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 4, v: 2})
	n.use(0, 10)
	again := func(call func()) func() {
		return func() {
			for range 1000 { // it looks now and then
				call()
			}
		}
	}
	s, p := n.owners[1].s, &n.holders[0].peers[1]
	look := again(func() { s.mu.Lock(); defer s.mu.Unlock(); s.recount() })
	require.NotPanics(t, look)
	s.own++
	require.PanicsWithValue(t, "bug: own 1, going 0, idle 0, held 2 units; counted again 0, 0, 0, 2", look)
	s.own--
	s.peers[0].held++
	require.Panics(t, look)
	s.peers[0].held--
	look = again(func() { n.holders[0].recount(p) })
	require.NotPanics(t, look)
	p.used++
	require.Panics(t, look)
	p.used--
	p.idleW--
	require.Panics(t, look)
}
