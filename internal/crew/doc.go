// Package crew is the ranks of one host as processes: it starts them, looks at them, signals them and takes their ends. It decides nothing:
// internal/launch does, for the ranks of its own machine directly and for those of others through the agent that runs there.
//
// # Terms
//
//   - Plan: what is to run on one host: a block of the job's ranks. It travels to agents as JSON.
//   - Crew: the started ranks of a plan.
//   - Leader: the process started for a rank, the leader of a process group of its own.
//   - Guard: a shell that waits for the end of the process that made it and then kills what is left. It is needed where a rank is a
//     script: the kernel's parent-death signal reaches the leader only. It is there before the first rank, and is told of each as soon as that has started.
//
// # Life of a crew
//
// Start finds the program, makes for every rank pipes for output, a socket for PMI and one for control, and starts all ranks or none
// from one locked thread, which stays until Reap: the kernel sends the parent-death signal when it ends. Process.Wait returns
// when a leader has ended, Process.Settle makes the sockets end where it stopped, and Crew.Reap, last of all, takes the numbers back.
//
// # Invariants
//
//   - W1: a leader is reaped by Reap only. Until then its number stands for its group, so no signal can reach a stranger
//     that got the same number.
//   - W2: ranks see none of the variables by which an outer launcher told this process who it is.
//   - W3: a plan that cannot be carried out is refused whole, before or by its first failure; nothing of it is left.
//
// # Concurrency and limits
//
// The methods of Process and Crew may be called by any goroutine, Reap once, after which no signal may be sent. Linux only: process groups
// that die with their launcher are made of its system calls.
package crew
