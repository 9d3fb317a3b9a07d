// Package bootstrap is what a rank knows of its job before it has any connection of its own: which rank it is, of how
// many, under which launcher, and how to hand a small card of bytes to every other rank.
//
// # Terms
//
//   - Job: one rank's view of the running program. Open finds it from the environment; InProcess makes the jobs
//     of ranks that are goroutines of one process.
//   - Card: what a rank wants all others to know, usually the addresses by which it can be reached. Any length, though a
//     launcher is slow: think of hundreds of bytes.
//   - Generation: the number of an exchange. Every key carries it, because a launcher's key is put once for ever.
//   - Host: where a rank runs, in enough detail to decide whether two ranks share memory, processes and files.
//
// # Life of a job
//
// Open, then Exchange and Barrier as often as wanted, by all ranks in the same order. Close last of all: until then a
// launcher takes the end of the process for a crash, which is what one wants when it is one. Abort, at any time and from
// any goroutine, asks the launcher to end all ranks.
//
// # How a job is found
//
// In this order, because a launcher started within another leaves the outer one's variables in place:
//
//  1. PMI_FD or PMI_PORT: PMI-1, as pgasrun, mpiexec.hydra, srun --mpi=pmi2 and Flux serve it. It is pgasrun where the
//     name in PGAS_JOB is the one that the server itself gives.
//  2. OMPI_COMM_WORLD_RANK or PMIX_RANK: Open MPI's mpirun, which serves no PMI-1. An error with the cure.
//  3. SLURM_STEP_ID with SLURM_STEP_NUM_TASKS above 1: srun without PMI. An error with the cure.
//  4. PMI_RANK, PMI_SIZE or PMI_ID, and neither PMI_FD nor PMI_PORT: a launcher with a PMI of its own, as Cray's, or one that is set up
//     wrong. An error with the cure: without it each rank would take itself for a job of one. PMI_SIZE=1, alone or with PMI_RANK=0, is none.
//  5. Nothing: a job of one rank.
//
// # Invariants
//
//   - B1: Exchange and Barrier end when their context does, with its cause. Request and answer may have parted then, so
//     the job is unusable and every later call says so; Abort still works.
//   - B2: when the launcher has gone, the error of every waiting and later call wraps ErrLauncherGone. When a rank has left
//     that a barrier needs, pgasrun and InProcess say so, pgasrun by an error wrapping transport.ErrPeerGone that names the rank; other launchers may let the others wait.
//   - B3: children that a rank starts do not inherit the connection.
//   - B4: nothing is read from the process's environment; the caller gives it.
//
// # Concurrency and limits
//
// All methods may be called by any goroutine; collective calls of one rank queue behind each other. An exchange costs one
// launcher request per rank and per 512 bytes of each card, 0.02 to 0.7 ms each.
package bootstrap
