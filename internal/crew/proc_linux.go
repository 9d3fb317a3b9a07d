package crew

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of times in /proc, USER_HZ: 100 on every machine Go runs on.
const ticksPerSecond = 100

// describe says what the system shows of a process, for a rank that does not answer.
func describe(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "not visible in /proc"
	}
	state, ticks, ok := parseStat(stat)
	if !ok {
		return "not readable in /proc"
	}
	text, of := stateName(state), fmt.Sprintf("/proc/%d", pid)
	if state == 'Z' {
		if thread, s, ok := lastThread(pid); ok {
			text, of = "ended but for a thread, "+stateName(s), thread
		}
	}
	if where, err := os.ReadFile(of + "/wchan"); err == nil {
		if w := strings.TrimSpace(string(where)); w != "" && w != "0" {
			text += " in " + w
		}
	}
	return fmt.Sprintf("%s, %.2f s of CPU used", text, float64(ticks)/ticksPerSecond)
}

// lastThread returns the folder in /proc of a thread that has not ended, and its state. The first thread of a process may have ended long before the others: a
// thread that the kernel keeps, as one does that gives much memory back, keeps the process.
func lastThread(pid int) (folder string, state byte, ok bool) {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return "", 0, false
	}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if s, _, ok := parseStat(stat); ok && s != 'Z' && s != 'X' {
			return filepath.Dir(name), s, true
		}
	}
	return "", 0, false
}

// cpuOf is what a process has used of the CPU, 0 where the system does not say.
func cpuOf(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, ticks, _ := parseStat(stat)
	return time.Duration(ticks) * (time.Second / ticksPerSecond)
}

// parseStat takes state and CPU time out of a line of /proc/PID/stat. The name in it may contain anything, so the fields are
// counted from its last parenthesis.
func parseStat(stat []byte) (state byte, ticks uint64, ok bool) {
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 {
		return 0, 0, false
	}
	f := strings.Fields(string(stat[i+1:]))
	if len(f) < 13 || len(f[0]) != 1 {
		return 0, 0, false
	}
	user, err1 := strconv.ParseUint(f[11], 10, 64)
	system, err2 := strconv.ParseUint(f[12], 10, 64)
	return f[0][0], user + system, err1 == nil && err2 == nil
}

func stateName(s byte) string {
	switch s {
	case 'R':
		return "computing"
	case 'S':
		return "sleeping"
	case 'D':
		return "sleeping in the kernel (uninterruptible)"
	case 'T', 't':
		return "stopped"
	case 'Z':
		return "ended"
	}
	return "in state " + string(rune(s))
}
