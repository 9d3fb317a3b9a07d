//go:build !linux

package crew

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"time"
)

// Clock returns nanoseconds by a clock that all processes of this machine share.
func Clock() int64 { return time.Now().UnixNano() }

// Crew needs Linux.
type Crew struct{ Bound []string }

// Guard needs Linux.
type Guard struct{}

func unsupported() error {
	return fmt.Errorf("starting ranks is not supported on %s: it needs Linux", runtime.GOOS)
}

// Start needs Linux.
func Start(Plan, func(rank int) Streams, *Guard) (*Crew, error) { return nil, unsupported() }

// Processes has none to return.
func (*Crew) Processes() []Process { return nil }

// Reap does nothing.
func (*Crew) Reap(func(i int) bool) []Usage { return nil }

// StartGuard needs Linux.
func StartGuard(_, _ string) (*Guard, error) { return nil, unsupported() }

// Watch does nothing.
func (*Guard) Watch(int) {}

// Dismiss does nothing.
func (*Guard) Dismiss() {}

// AwaitEnd needs Linux.
func AwaitEnd(int) error { return unsupported() }

// SocketPair needs Linux.
func SocketPair() (net.Conn, *os.File, error) { return nil, nil, unsupported() }
