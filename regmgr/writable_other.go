//go:build !linux

package regmgr

import "gopgas/internal/mem"

// probeWrite knows no way to ask here; the NIC will refuse.
func probeWrite(mem.Range, int) bool { return true }
