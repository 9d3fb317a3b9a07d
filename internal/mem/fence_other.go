//go:build !amd64 && !arm64

package mem

import "sync/atomic"

// FullFence orders every earlier load and store of this goroutine before every later one, for all observers.
func FullFence() { new(atomic.Uint32).Add(1) }

// StoreFence orders earlier stores before later stores.
func StoreFence() { new(atomic.Uint32).Add(1) }
