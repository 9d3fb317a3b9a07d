//go:build !amd64 && !arm64

package mem

import "sync/atomic"

var fenceWord atomic.Uint32

// FullFence orders every earlier load and store of this goroutine before every later one, for all observers.
func FullFence() { fenceWord.Add(1) }

// StoreFence orders earlier stores before later stores.
func StoreFence() { fenceWord.Add(1) }
