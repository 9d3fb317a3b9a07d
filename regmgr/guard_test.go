package regmgr

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/predict"
)

// TestPanicInARegistration: it ends as a refusal with its cause, for the caller and for whoever waits for the region, and
// the next registration is made.
func TestPanicInARegistration(t *testing.T) {
	errDriver := errors.New("a table in the driver is broken")
	for name, cause := range map[string]any{"error": errDriver, "words": "a table in the driver is broken"} {
		t.Run(name, func(t *testing.T) {
			n := newNIC()
			m := managerOn(t, n, Config{})
			buf := heap(16)
			inside, goOn := make(chan struct{}), make(chan struct{})
			var once atomic.Bool
			n.during = func() {
				if once.Swap(true) {
					return
				}
				close(inside)
				<-goOn
				panic(cause)
			}
			waiter := make(chan error)
			go func() {
				<-inside
				h := new(Hold)
				err := m.Acquire(h, Request{Mem: buf})
				if err == nil {
					m.Release(h)
				}
				waiter <- err
			}()
			first := make(chan error)
			go func() { first <- m.Acquire(new(Hold), Request{Mem: buf}) }()
			require.Eventually(t, func() bool { return len(m.cfg.Sched.Waits()) == 1 }, 20*time.Second, time.Millisecond)
			close(goOn)
			err := <-first
			require.ErrorIs(t, err, ErrCopy)
			require.ErrorIs(t, err, errPanic)
			require.ErrorContains(t, err, errDriver.Error())
			require.Equal(t, name == "error", errors.Is(err, errDriver))
			require.NoError(t, <-waiter, "who waited registers it himself")
			require.ErrorContains(t, m.Refusal(), errDriver.Error())
			s := m.Stats()
			require.Equal(t, [2]uint64{1, 1}, [2]uint64{s.Refused, s.Registrations})
			require.EqualValues(t, 16*page, s.Bytes)
		})
	}
}

// TestPanicOnTheHelper: the helper's registrations panic. Uses go on demand, nobody waits for ever, and the helper goes on.
func TestPanicOnTheHelper(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{Policy: Predictive, Ahead: &Ahead{}})
	buf := heap(16)
	spot := acquireSpot(t, m, buf)
	require.Eventually(t, func() bool { return m.registeredBytes(n) == 0 }, 20*time.Second, time.Millisecond)
	n.during = func() { panic("a table in the driver is broken") }
	require.ErrorIs(t, spotCache{m}.Register(predict.Region(spot.id)), errPanic)
	require.ErrorIs(t, spotCache{m}.Register(predict.Region(spot.id)), ErrCopy, "again")
	require.Zero(t, m.Stats().CopiedRefused, "nobody has copied")
	require.ErrorContains(t, m.Refusal(), "a table in the driver is broken")
	require.True(t, m.ahead.helper.Running())
	n.during = nil
	h := acquire(t, m, buf, 0)
	require.Same(t, spot, h.Region().spot)
	m.Release(h)
	runtime.KeepAlive(buf)
}

// TestPanicInADeregistration: whether the memory is registered is not known, so it stays pinned and charged (R3).
func TestPanicInADeregistration(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{Policy: OnDemand})
	n.stubborn = true // nothing is checked at the end
	n.ending = func() { panic("a table in the driver is broken") }
	m.Release(acquire(t, m, heap(16), 0))
	s := m.Stats()
	require.EqualValues(t, 1, s.Stuck)
	require.EqualValues(t, 16*page, s.Bytes)
	require.ErrorContains(t, m.Refusal(), "a table in the driver is broken")
	require.ErrorContains(t, m.Close(), "stay")
	m.Forget()
}
