package mem

// FullFence orders every earlier load and store of this goroutine before every later one, for all observers.
//
//go:noescape
func FullFence()

// StoreFence orders earlier stores before later stores. Total store order gives that; the compiler keeps
// stores in program order.
func StoreFence() {}
