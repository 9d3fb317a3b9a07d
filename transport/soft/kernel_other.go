//go:build !linux

package soft

import (
	"fmt"

	"gopgas/internal/mem"
	"gopgas/transport"
)

var errNotLinux = fmt.Errorf("copying between processes needs Linux: %w", transport.ErrUnsupported)

type mover struct{}

func (m *mover) prepare()                                    {}
func (m *mover) push(int, uint64, []transport.SGE) error     { return errNotLinux }
func (m *mover) pull(int, uint64, []transport.SGE) error     { return errNotLinux }
func (m *mover) collect(int, mem.Range, []remotePiece) error { return errNotLinux }

func (m *mover) pair(int, mem.Range, uint64) {}
func (m *mover) bunch(bool, int, int) int    { return 0 }

func skewed(bool, mem.Range, uint64) bool { return false }

func isGone(error) bool { return false }

func readHead(int, uint64, mem.Range) error { return errNotLinux }

func allowPeers() {}

func sharpenTimers() {}

func leave(int)    {}
func thisCPU() int { return -1 }

type lifeline struct{}

func openLifeline(int) (*lifeline, error) { return nil, errNotLinux }

func (l *lifeline) ended() bool { return true }
func (l *lifeline) wait() bool  { return true }
func (l *lifeline) close()      {}
