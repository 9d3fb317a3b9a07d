package crew

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// showsStacks says whether QUIT makes a process print its stacks: it is a Go program whose run time has taken hold of the signal. QUIT
// ends any other at once, without what it does on TERM.
func showsStacks(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil || !catches(status, syscall.SIGQUIT) {
		return false
	}
	_, err = buildinfo.ReadFile(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil
}

// catches says whether /proc/PID/status shows a handler of sig.
func catches(status []byte, sig syscall.Signal) bool {
	for line := range bytes.Lines(status) {
		if mask, ok := bytes.CutPrefix(line, []byte("SigCgt:")); ok {
			n, err := strconv.ParseUint(string(bytes.TrimSpace(mask)), 16, 64)
			return err == nil && n>>(sig-1)&1 == 1
		}
	}
	return false
}

// AskStacks implements Process. The signal goes to the thread that computes: the stack of the goroutine there is certain to be printed, one
// that runs elsewhere has to be stopped first, which Go tries for a few milliseconds.
func (p *process) AskStacks() {
	if unix.Tgkill(p.PID(), busiestThread(p.PID()), syscall.SIGQUIT) != nil {
		_ = unix.Kill(p.PID(), syscall.SIGQUIT)
	}
	_ = unix.Kill(p.PID(), syscall.SIGCONT) // a stopped process does not hear it
}

// busiestThread is the thread that has used the most CPU of those that compute, or of all where none does.
func busiestThread(pid int) int {
	best, most, running := pid, uint64(0), false
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/stat", pid))
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has just ended
		}
		state, ticks, ok := parseStat(stat)
		tid, err := strconv.Atoi(strings.TrimSpace(string(stat[:max(0, bytes.IndexByte(stat, ' '))])))
		if !ok || err != nil {
			continue
		}
		if computes := state == 'R'; computes && !running || computes == running && ticks > most {
			best, most, running = tid, ticks, computes
		}
	}
	return best
}
