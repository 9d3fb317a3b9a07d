package crew

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"gopgas/internal/pmi"
)

// guardScript reads from its standard input, whose other end only the process that made it holds, which rank is about to be started, and the number of each process group.
// When the input ends, that process has: the script kills the groups, and what there is of a rank whose group it has not been told yet, by its environment, and removes the scratch
// folder. "$1" is that folder or empty, "$2" the job.
const guardScript = `trap '' INT TERM HUP QUIT USR1 USR2
groups= begun=
while read -r what number; do
	case $what in
	rank) begun=$number ;;
	group) groups="$groups $number" begun= ;;
	esac
done
for group in $groups; do kill -9 "-$group"; done 2>/dev/null
[ -z "$begun" ] || for environ in $(grep -lszFx "` + pmi.EnvJob + `=$2" /proc/[0-9]*/environ); do
	grep -qszFx "` + EnvRank + `=$begun" "$environ" || continue
	process=${environ#/proc/}
	kill -9 "${process%/environ}"
done 2>/dev/null
[ -z "$1" ] || rm -rf -- "$1"`

// Guard is a running guardScript. A nil Guard watches nothing.
type Guard struct {
	process *os.Process
	hold    *os.File // its input
}

// StartGuard starts a guard of a job over a folder, which is removed; empty: none. It comes before what the guard is to watch, so that nothing is ever without.
func StartGuard(scratch, job string) (*Guard, error) {
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
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", guardScript, "pgasrun-guard", scratch, job}, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Files: []*os.File{in, null, null},
		Sys: &syscall.SysProcAttr{Setsid: true}, // the end of a terminal must not reach it
	})
	if err != nil {
		hold.Close()
		return nil, fmt.Errorf("start a guard: %w", err)
	}
	return &Guard{p, hold}, nil
}

// Watch has the guard kill a process group too: that of the rank that was begun last, if there was one. Any goroutine may call it.
func (g *Guard) Watch(group int) { g.tell("group", group) }

// begin has the guard know of a rank that is about to start: it may have children before anybody can say which group it is.
func (g *Guard) begin(rank int) { g.tell("rank", rank) }

func (g *Guard) tell(what string, number int) {
	if g != nil {
		_, _ = g.hold.WriteString(what + " " + strconv.Itoa(number) + "\n") // an error: it was dismissed, or somebody has killed it
	}
}

// Dismiss ends the guard before its time, and before any number that it has been told is taken back: killed first, so that the end of its input cannot wake it.
func (g *Guard) Dismiss() {
	if g == nil {
		return
	}
	_ = g.process.Kill()
	_, _ = g.process.Wait()
	g.hold.Close()
}
