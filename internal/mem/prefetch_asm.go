//go:build amd64 || arm64

package mem

import "unsafe"

// Prefetch has the line at addr brought into the cache and does not wait for it, where a load would hold back what comes some
// hundreds of instructions after it. It never faults. Calls from a loop that later uses all the lines let them come at the same time.
//
//go:noescape
func Prefetch(addr unsafe.Pointer)
