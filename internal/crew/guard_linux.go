package crew

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// guardScript waits on its standard input, whose other end only the process that made it holds. When that ends, the process
// has: kill the groups that are left and remove the scratch folder. "$1" is that folder or empty, the rest are groups.
const guardScript = `trap '' INT TERM HUP QUIT USR1 USR2
read -r line
scratch=$1; shift
for group; do kill -9 "-$group"; done 2>/dev/null
[ -z "$scratch" ] || rm -rf -- "$scratch"`

// Guard is a running guardScript.
type Guard struct {
	process *os.Process
	hold    *os.File // its input
}

// StartGuard starts a guard over these process groups and over a folder, which is removed; empty: none.
func StartGuard(groups []int, scratch string) (*Guard, error) {
	in, hold, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		hold.Close()
		return nil, err
	}
	defer null.Close()
	argv := []string{"sh", "-c", guardScript, "pgasrun-guard", scratch}
	for _, g := range groups {
		argv = append(argv, strconv.Itoa(g))
	}
	p, err := os.StartProcess("/bin/sh", argv, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Files: []*os.File{in, null, null},
		Sys: &syscall.SysProcAttr{Setsid: true}, // the end of a terminal must not reach it
	})
	if err != nil {
		hold.Close()
		return nil, fmt.Errorf("start a guard: %w", err)
	}
	return &Guard{p, hold}, nil
}

// Dismiss ends the guard before its time: killed first, so that the end of its input cannot wake it. A nil guard is none.
func (g *Guard) Dismiss() {
	if g == nil {
		return
	}
	_ = g.process.Kill()
	_, _ = g.process.Wait()
	g.hold.Close()
}
