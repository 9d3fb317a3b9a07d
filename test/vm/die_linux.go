package vm

import "syscall"

// dieTogether has a child end with the thread that started it.
func dieTogether() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
