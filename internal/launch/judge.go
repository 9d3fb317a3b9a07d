package launch

import (
	"fmt"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"gopgas/internal/pmiserver"
)

// deed is what the loop does when the judge says so.
type deed uint8

const (
	say         deed = iota // log text
	tellGone                // tell the other ranks that rank has ended: text
	forward                 // send sig to every group
	suspendSoon             // stop the launcher itself, once what was forwarded is on its way
	stayAwake               // or not, since somebody has continued it
	interrupt               // send SIGINT to the wrapped ranks
	startGrace              // SIGKILL to every group after the grace time
	remindSoon              // ask whether ranks still run after the grace time
	askStacks               // QUIT to rank, a Go program that is to print its stacks
	endAll                  // SIGTERM to every group but those of ranks that were asked for their stacks, then startGrace
	killAll                 // SIGKILL to every group
	report                  // print the hang report
)

// action is one deed and what it needs.
type action struct {
	do   deed
	rank int
	sig  syscall.Signal
	text string
}

// judge decides what follows from what happened. It is pure: no time, no processes, no output.
type judge struct {
	hosts   []string // by rank
	noKill  bool
	wrapped map[int]bool // the ranks that a debugger or the like runs
	timeout time.Duration
	grace   time.Duration

	decided bool // by the first failure
	code    int
	cause   string

	asked map[int]bool // the ranks that were asked for their stacks, run, and have had no SIGTERM

	warned    bool // a SIGTERM was forwarded to all, and the grace runs from there
	ending    bool // endAll was ordered, or was not needed any more
	killing   bool // killAll was ordered
	stops     int  // INT and TERM received
	quits     int
	forwarded syscall.Signal // the last one that usually ends a program
}

// decide records the first failure and says whether it is this one.
func (j *judge) decide(code int, cause string) bool {
	if j.decided {
		return false
	}
	j.decided, j.code, j.cause = true, code, cause
	return true
}

// rankEnded judges the end of a rank that had come as far as state.
func (j *judge) rankEnded(e RankEnd, state pmiserver.State) []action {
	delete(j.wrapped, e.Rank)
	delete(j.asked, e.Rank)
	how, failed := howEnded(e, state)
	if !failed {
		return nil
	}
	code := e.code()
	if code == 0 {
		code = 1
	}
	acts := []action{{do: tellGone, rank: e.Rank, text: how}}
	cause := fmt.Sprintf("rank %d on %s %s after %s", e.Rank, j.hosts[e.Rank], how, seconds(e.After))
	if j.forwarded != 0 && code == 128+int(j.forwarded) { // killed by it, or ended because of it, as Main and shells do
		cause = fmt.Sprintf("ended by %s, which the launcher received and forwarded", unix.SignalName(j.forwarded))
	}
	if !j.ending && !j.killing || !j.decided {
		if j.decide(code, cause) {
			acts = append(acts, action{do: say, text: cause})
		} else {
			acts = append(acts, action{do: say, text: cause + ", too"}) // only with noKill
		}
	}
	if !j.noKill {
		acts = append(acts, j.end()...)
	}
	return acts
}

// end orders the end of all ranks, once. Those that were sent a SIGTERM already have their grace from there: programs take a second one as the wish
// to end at once, and leave what they do on the first.
func (j *judge) end() []action {
	if j.ending || j.killing {
		return nil
	}
	j.ending = true
	if j.warned {
		return []action{{do: forward, sig: syscall.SIGCONT}} // a stopped process did not hear it
	}
	return []action{{do: endAll}}
}

func (j *judge) kill() []action {
	if j.killing {
		return nil
	}
	j.killing = true
	return []action{{do: killAll}}
}

// aborted judges the wish of a rank to end the job.
func (j *judge) aborted(rank, code int, text string, after time.Duration) []action {
	if code < 0 || code > 255 {
		if code &= 0xff; code == 0 { // what an exit code can carry, and not by accident success
			code = 1
		}
	}
	cause := fmt.Sprintf("rank %d on %s aborted the job with code %d after %s", rank, j.hosts[rank], code, seconds(after))
	if text = printable(text); text != "" {
		cause += ": " + text
	}
	var acts []action
	if j.decide(code, cause) {
		acts = append(acts, action{do: say, text: cause})
	}
	return append(acts, j.end()...)
}

// unread judges that who read the job's output has gone, as head(1) does when it has enough. A program that writes on then is ended by SIGPIPE.
func (j *judge) unread() []action {
	const cause = "nobody reads the output any more"
	var acts []action
	if j.decide(128+int(syscall.SIGPIPE), cause) {
		acts = append(acts, action{do: say, text: cause + ": ending the job"})
	}
	return append(acts, j.end()...)
}

// signalled judges a signal that the launcher received.
func (j *judge) signalled(sig syscall.Signal) []action {
	if sig == syscall.SIGINT && len(j.wrapped) > 0 {
		return []action{{do: interrupt}} // it is how one talks to a debugger, as often as one likes
	}
	switch sig {
	case syscall.SIGTSTP: // Ctrl-Z reaches the launcher alone. No rank may ignore it, else those that do not would wait for it
		return []action{{do: forward, sig: syscall.SIGSTOP}, {do: suspendSoon}}
	case syscall.SIGCONT:
		return []action{{do: stayAwake}, {do: forward, sig: sig}}
	case syscall.SIGQUIT:
		j.quits++
		if j.quits == 1 {
			return []action{{do: report}}
		}
	case syscall.SIGINT, syscall.SIGTERM:
		j.stops++
		if j.stops > 1 {
			j.decide(128+int(sig), "killed on a second "+unix.SignalName(sig))
			return append([]action{{do: say, text: "second " + unix.SignalName(sig) + ": killing all ranks"}}, j.kill()...)
		}
	}
	if sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2 {
		j.forwarded = sig
	}
	acts := []action{{do: forward, sig: sig}}
	if sig == syscall.SIGTERM && !j.ending {
		j.warned = true
		acts = append(acts, action{do: startGrace}) // whoever sends it, a batch system say, wants an end
	}
	if sig == syscall.SIGINT && !j.ending {
		acts = append(acts, action{do: remindSoon})
	}
	return acts
}

// stillRunning judges a job that still runs some time after a SIGINT, as a program may that saves its work, or ignores it.
func (j *judge) stillRunning() []action {
	if j.ending || j.killing || j.stops > 1 {
		return nil
	}
	return []action{{do: say, text: fmt.Sprintf("ranks still run %s after SIGINT; another one (Ctrl-C) kills them", seconds(j.grace))}}
}

// timedOut judges the end of the time limit, after the hang report. quiet are the ranks that told of no wait and can print their stacks, which
// ends them: they have the grace time for that, and again for a SIGTERM after it.
func (j *judge) timedOut(quiet []int) []action {
	cause := fmt.Sprintf("the job still ran after %s, its time limit", seconds(j.timeout))
	var acts []action
	if j.decide(CodeTimeout, cause) {
		acts = append(acts, action{do: say, text: cause + ": ending it"})
	}
	end := j.end()
	if end == nil || j.warned {
		return append(acts, end...)
	}
	acts = append(acts, end...) // before those end whom the others may wait for
	j.asked = map[int]bool{}
	for _, r := range quiet {
		if !j.wrapped[r] { // the stacks would be its debugger's
			j.asked[r] = true
			acts = append(acts, action{do: askStacks, rank: r})
		}
	}
	return acts
}

// stopped judges the end of the caller's context.
func (j *judge) stopped(why error) []action {
	j.decide(CodeStopped, "stopped by the caller: "+why.Error())
	return j.end()
}

// graceOver judges the end of the grace time.
func (j *judge) graceOver() []action {
	if len(j.asked) > 0 && !j.killing {
		j.asked = nil
		return []action{{do: endAll}}
	}
	if j.killing || j.forwarded != syscall.SIGTERM {
		return j.kill()
	}
	cause := fmt.Sprintf("did not end within %s of SIGTERM, which the launcher received and forwarded", seconds(j.grace))
	var acts []action
	if j.decide(128+int(syscall.SIGTERM), cause) {
		acts = append(acts, action{do: say, text: cause + ": killing all ranks"})
	}
	return append(acts, j.kill()...)
}

// howEnded puts the end of a rank in words and says whether it is a failure.
func howEnded(e RankEnd, state pmiserver.State) (how string, failed bool) {
	switch {
	case e.Lost != "":
		return printable(e.Lost), true
	case e.Signal != 0:
		return "was killed by " + unix.SignalName(e.Signal), true
	case e.Exit == 0 && state == pmiserver.Begun:
		return "exited with 0 without leaving the job (no PMI finalize: the program calls World.Close at its end, or leaves that to pgas.Main; an MPI program MPI_Finalize)", true
	case e.Exit == 0 && state == pmiserver.Garbled:
		return "exited with 0, but what it wrote to PMI_FD is not PMI-1 (its MPI library is for another launcher, or something else writes to that file)", true
	case e.Exit == 0 && state == pmiserver.Broken:
		return "exited with 0, but its PMI connection failed before it left the job (a line above says how)", true
	}
	return fmt.Sprintf("exited with %d", e.Exit), e.Exit != 0
}

// seconds prints a duration as people read it.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// printable takes out what a rank must not do to a terminal, for which U+009B is what ESC and [ are.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.TrimSpace(s))
}
