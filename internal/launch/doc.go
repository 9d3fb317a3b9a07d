// Package launch starts the ranks of a job as processes, on this machine (internal/crew) or through agents on others
// (internal/agent), watches them, and ends them together. It is what cmd/pgasrun is made of, and tests start their ranks through
// it too.
//
// # Terms
//
//   - Rank process, or leader: the process started for a rank, the leader of a process group of its own.
//   - Failure: a rank process that exits with a code other than 0, is killed by a signal, asks for the end of the job,
//     or exits with 0 between PMI's "init" and "finalize". Programs that never began PMI may just exit.
//   - First failure: the first that the launcher learns of. It decides the exit code and is named in one line.
//   - Grace: the time between SIGTERM and SIGKILL.
//   - Guard: a shell that waits for the launcher's end and then kills what is left, should the launcher itself be
//     killed.
//   - Site: a host with the block of ranks that runs there. Lost: what the ranks of a site are whose agent is heard of no more.
//
// # Life of a job
//
// Run checks the Spec and finds the program. It reaches all hosts at once and then starts all ranks at once; if a host
// cannot be had, none runs anywhere. Then one loop receives what happens (a rank ended, a
// signal came, time is up) and hands it to a judge, a pure state machine that says what to do; the loop does it. When all
// leaders have ended and their output has been read to its end, what is left in their process groups is killed,
// the leaders are reaped, and the Result is complete.
//
// # Invariants
//
//   - L1: when Run returns, every leader has been reaped and what else was in its group has been killed; when the launcher
//     is killed, so are they. A process that left its group by setsid is outside of this promise.
//   - L2: a leader is reaped last of all. Until then its number stands for its group, so no signal of ours can reach a
//     stranger that got the same number.
//   - L3: what a rank sent before it ended is read before its end is judged, so "abort, then exit" is an abort.
//   - L4: output is written in whole lines, stdout and stderr apart; a last line without a newline gets one.
//   - L5: the job's secret stands in no argument list and in no environment.
//   - L6: ranks see none of the variables by which an outer launcher told this process who it is.
//
// # Signals
//
// INT, TERM, HUP, USR1 and USR2 go to all process groups. After a TERM what has not ended within the grace is killed, and whoever ends
// first of it has no other one sent to the rest, which may still save what they have; a second INT or TERM kills at once; who does not heed the first INT is told so after the grace. The first QUIT prints the hang report
// and touches no rank; a second one is forwarded, so that Go programs print their stacks and end.
//
// None of this waits for who reads the output. When all ranks have ended he is waited for: an INT or TERM leaves him the grace, a second one nothing, and
// where the job should have ended already he is waited for as long as he reads. So are, by INT and TERM, hosts that bring what ranks there have left. When he has gone (EPIPE) while ranks run, they are ended as after a failure.
//
// At the end of the time limit the hang report comes first. Then Go ranks that told of no wait get QUIT: their stacks come out as their standard
// error, and they end. All others get TERM, and so does, after the grace, who was asked for stacks and runs still.
//
// # A job that stands still
//
// Every ten seconds the launcher looks at what its ranks have used of the CPU. When none has computed in that time it asks them what they wait
// for, and when all that run have waited as long, it says so in one line, once. Ranks that compute are asked nothing.
//
// # Limits
//
// A line of output is held until its newline comes, MaxOutputLine bytes at most. Stopping the launcher
// from a terminal does not stop the ranks. Where standard input is a terminal it is copied to the rank through a pipe, as long as
// the launcher is in its foreground; in the background it runs on without. A single
// wrapped rank has the terminal itself, and is in its foreground, until it ends.
package launch
