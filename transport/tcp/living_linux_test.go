package tcp

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/transport"
)

// door is a port that is this process's and on which nobody listens before it is opened: the kernel refuses who calls, as it does for
// a process that has ended.
type door struct {
	at netip.AddrPort
	fd int
}

func newDoor(t *testing.T) *door {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	sa, err := unix.Getsockname(fd)
	require.NoError(t, err)
	return &door{netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(sa.(*unix.SockaddrInet4).Port)), fd}
}

func (d *door) open() (net.Listener, error) {
	if err := unix.Listen(d.fd, 16); err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "door")
	defer f.Close()
	return net.FileListener(f)
}

// TestRefusedByTheLiving: whether a rank that refuses a call is gone depends on what is known of its process.
func TestRefusedByTheLiving(t *testing.T) {
	const forever = time.Hour
	// call has rank 0 call rank 1 at a door that stays closed, as one that is told by lives.
	call := func(t *testing.T, patience time.Duration, lives func(rank int) (lives, known bool)) error {
		a := openRank(t, 0, 2, Config{FailureTimeout: patience}, transport.Config{Lives: lives})
		to := address{rank: 1, instance: 7, places: []netip.AddrPort{newDoor(t).at}}
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
		at := newDoor(t)
		b := openRank(t, 1, 2, Config{FailureTimeout: forever}, transport.Config{})
		var asked atomic.Int32
		lives := func(int) (lives, known bool) {
			if asked.Add(1) == 5 {
				l, err := at.open()
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
		to.places = []netip.AddrPort{at.at}
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
