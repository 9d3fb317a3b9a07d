package crew

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"syscall"

	"golang.org/x/sys/unix"
)

// Values of siginfo's si_code for SIGCHLD (Linux include/uapi/asm-generic/siginfo.h).
const (
	cldExited = 1
	cldKilled = 2
	cldDumped = 3
)

// AwaitEnd returns when pid, a child of this process, has ended. It stays a zombie: until it is reaped its number is taken, and stands for its group.
func AwaitEnd(pid int) error {
	_, _, err := waitEnd(pid)
	return err
}

// waitEnd returns when pid, a child, has ended, and how. The child stays a zombie (W1).
func waitEnd(pid int) (exit int, sig syscall.Signal, err error) {
	var info unix.Siginfo
	for {
		err = unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("wait for process %d: %w", pid, err)
	}
	status := int(siStatus(&info))
	switch info.Code {
	case cldExited:
		return status, 0, nil
	case cldKilled, cldDumped:
		return 0, syscall.Signal(status), nil
	}
	return 0, 0, fmt.Errorf("wait for process %d: unknown si_code %d", pid, info.Code)
}

// siStatus reads si_status. x/sys/unix leaves that part of the union as a blank array: it starts with si_pid and si_uid, of
// four bytes each, and si_status follows. Reflection may read blank fields, which spares us a pointer conversion.
func siStatus(info *unix.Siginfo) int32 {
	v := reflect.ValueOf(info).Elem()
	union := v.Field(v.NumField() - 1)
	var raw [4]byte
	for i := range raw {
		raw[i] = byte(union.Index(8 + i).Uint())
	}
	return int32(binary.NativeEndian.Uint32(raw[:]))
}
