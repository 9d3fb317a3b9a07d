package tcp

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// loopback is where the doors of these tests are.
var loopback = netip.MustParseAddr("127.0.0.1")

// TestRefusedByTheLiving: whether a rank that refuses a call is gone depends on what is known of its process.
func TestRefusedByTheLiving(t *testing.T) {
	const forever = time.Hour
	// call has rank 0 call rank 1 at a door that stays closed, as one that is told by lives.
	call := func(t *testing.T, patience time.Duration, lives func(rank int) (lives, known bool)) error {
		a := openRank(t, 0, 2, Config{FailureTimeout: patience}, transport.Config{Lives: lives})
		at, _ := transporttest.Door(t, loopback)
		to := address{rank: 1, instance: 7, places: []netip.AddrPort{at}}
		_, err := a.Connect(t.Context(), 1, to.append(nil))
		require.ErrorIs(t, err, transport.ErrPeerGone)
		return err
	}
	t.Run("nobody knows", func(t *testing.T) {
		require.ErrorIs(t, call(t, forever, nil), syscall.ECONNREFUSED)
	})
	t.Run("it has ended", func(t *testing.T) {
		err := call(t, forever, func(int) (lives, known bool) { return false, true })
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
	t.Run("it ends meanwhile", func(t *testing.T) {
		var asked atomic.Int32
		err := call(t, forever, func(rank int) (lives, known bool) { return rank == 1 && asked.Add(1) < 9, true })
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.EqualValues(t, 9, asked.Load())
		require.NotContains(t, err.Error(), "lives")
	})
	t.Run("it lives and never listens", func(t *testing.T) {
		const patience = 60 * time.Millisecond
		began := time.Now()
		err := call(t, patience, func(int) (lives, known bool) { return true, true })
		require.GreaterOrEqual(t, time.Since(began), patience)
		require.ErrorContains(t, err, "no connection within 60ms, though its process lives")
	})
	t.Run("it lives and listens in the end", func(t *testing.T) {
		at, open := transporttest.Door(t, loopback)
		b := openRank(t, 1, 2, Config{FailureTimeout: forever}, transport.Config{})
		var asked atomic.Int32
		lives := func(int) (lives, known bool) {
			if asked.Add(1) == 5 {
				l, err := open()
				if err != nil {
					t.Error(err)
					return false, true
				}
				b.spawn(func() {
					defer l.Close()
					if conn, err := l.Accept(); err != nil || b.answerCall(conn.(*net.TCPConn)) != nil {
						t.Error("rank 1 has not answered", err)
					}
				})
			}
			return true, true
		}
		a := openRank(t, 0, 2, Config{FailureTimeout: forever}, transport.Config{Lives: lives})
		to := b.me
		to.places = []netip.AddrPort{at}
		_, err := a.Connect(t.Context(), 1, to.append(nil))
		require.NoError(t, err)
		a.serves(t, b)
	})
}

// TestEnded: what a call to a process that has ended came to is its end, whatever it was cut off by.
func TestEnded(t *testing.T) {
	err := ended(io.ErrUnexpectedEOF)
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	gone := errors.Join(transport.ErrPeerGone)
	require.Equal(t, gone, ended(gone))
}
