// Command pgasrun starts a program as the ranks of one job, on this machine or on several, and ends them together.
//
//	pgasrun -n 4 ./prog -rows 4096        a binary, with its own flags
//	pgasrun -n 4 ./examples/hello         a Go package: built first, into a temporary folder
//	pgasrun -H a:2,b:2 ./prog             on other hosts, by ssh: an agent on each, which is pgasrun itself (internal/agent)
//	pgasrun info                          what this machine offers and where its limits are
//
// # Terms
//
//   - Rank: one of the processes. It learns its number through PMI-1, so MPI programs built for that run too.
//   - Page: what --serve shows while the job runs. Picture: what --trace shows afterwards.
//   - First failure: it decides the exit code and is named in one line; the other ranks are ended.
//
// # Life of a call
//
// The command line is checked first and whole, so that a mistake costs nothing: each ends with a sentence that says what was
// found, what is needed and what helps. What --serve, --trace and --stats need is opened, so that a port or a file that is not to be
// had costs nothing either; what is in such a file stays until the job has something to take its place. Then a Go package is built, the job runs (internal/launch), the ranks' timelines are merged, and the
// counters that ranks sent are printed.
//
// # Exit codes
//
// 0 when all ranks end well; else that of the first failure, 128+signal where one killed the rank, 255 where its host was lost; 124 after the time limit;
// 141 when who reads the output has gone; 126 and 127 for a program that is not executable or not there; 2 for a command line or a package that makes no job; 1 when
// pgasrun itself is in trouble.
//
// # Invariants
//
//   - R1: flags end at the program's name; what follows is the program's own and is not looked at, but for a ":" by itself, with which mpiexec
//     begins another program: that is an error, unless -- came before.
//   - R2: standard output carries only what ranks print, and what was asked for: --help, --dry-run, info.
//   - R3: the temporary folder of a build is removed at the end, however the end comes.
package main
