//go:build !linux

package vm

import "syscall"

// dieTogether asks for nothing: there are no machines here (V4).
func dieTogether() *syscall.SysProcAttr { return nil }
