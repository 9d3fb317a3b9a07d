// Package slurm runs programs of this module under a real Slurm. Tests only.
//
// # What is tested
//
// A rank that srun --mpi=pmi2 starts finds its job by PMI-1, which Slurm's plugin of that name serves; under srun
// --mpi=none it ends with a sentence that says what to do. How Slurm's answers differ from Hydra's is told in package
// internal/pmi; here whole programs run, over shared memory and over a NIC, and one dies.
//
// # Life of a cluster
//
// start installs Debian's packages where they are absent, and writes a configuration of two nodes, both on this machine,
// into a folder of the test's. It starts munged, slurmctld and a slurmd for each node in the foreground, as children
// that end with the test, and waits until the nodes are idle. All listen on the loopback interface only, on ports that
// were free a moment before. Nothing of an installed Slurm's own configuration is read or changed.
//
// # Limits
//
// The nodes have one hostname and one memory, so the library sees, rightly, one node. Only root can start it, as only
// root installs packages.
package slurm
