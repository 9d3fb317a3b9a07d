package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gopgas/internal/pmi"
	"gopgas/transport"
)

// ErrNoRendezvous: the launcher was recognised, but offers no way for the ranks to find each other.
var ErrNoRendezvous = errors.New("this launcher offers the ranks no way to find each other that is spoken here")

// source says which launcher an environment shows.
type source uint8

const (
	fromNothing source = iota
	fromPMI
	fromOpenMPI
	fromSlurm
	fromBarePMI
)

// detect applies the order of the package comment.
func detect(env map[string]string) source {
	has := func(name string) bool { _, ok := env[name]; return ok }
	tasks, _ := strconv.Atoi(env["SLURM_STEP_NUM_TASKS"])
	slurmStep := has("SLURM_STEP_ID") && has("SLURM_PROCID") && tasks > 1
	switch {
	case has(pmi.EnvFD) || has(pmi.EnvPort):
		return fromPMI
	case has("OMPI_COMM_WORLD_RANK"):
		return fromOpenMPI
	case slurmStep:
		return fromSlurm // srun --mpi=pmix sets PMIX_RANK too, and has the better cure
	case has("PMIX_RANK"):
		return fromOpenMPI
	case !mayBeAlone(env):
		return fromBarePMI
	}
	return fromNothing
}

// mayBeAlone says whether what there is of PMI's variables, without a way to a launcher, tells of no other ranks: none, or rank 0 of 1. Anything else is what
// is left of a launcher that means several, or that is set up wrong: each of its ranks would take itself for a job of one.
func mayBeAlone(env map[string]string) bool {
	rank, ranked := env[pmi.EnvRank]
	size, sized := env[pmi.EnvSize]
	_, named := env[pmi.EnvID]
	return !named && (!ranked || rank == "0" && sized) && (!sized || size == "1")
}

// barePMI describes PMI's variables for an error: those that are set.
func barePMI(env map[string]string) string {
	var set []string
	for _, name := range []string{pmi.EnvRank, pmi.EnvSize, pmi.EnvID} {
		if v, ok := env[name]; ok {
			set = append(set, fmt.Sprintf("%s=%.40q", name, v))
		}
	}
	return strings.Join(set, ", ")
}

// Open finds the job that environ, as os.Environ returns it, describes. It speaks with the launcher but waits for no other
// rank. It may be called once per process, because it takes over the launcher's descriptor.
func Open(ctx context.Context, environ []string) (Job, error) {
	env := make(map[string]string, len(environ))
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok {
			env[name] = value
		}
	}
	switch detect(env) {
	case fromPMI:
		c, err := pmi.Connect(ctx, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		if short := transport.Shortage("joining the job", err); short != nil {
			return nil, short
		}
		if err != nil {
			return nil, fmt.Errorf("join the job: %w", err)
		}
		return newPMIJob(c, env[pmi.EnvJob]), nil
	case fromOpenMPI:
		return nil, fmt.Errorf("join the job: started by Open MPI or another PMIx launcher (OMPI_COMM_WORLD_RANK=%q, PMIX_RANK=%q): %w; "+
			"start it with pgasrun -n N, mpiexec.hydra -n N, or srun --mpi=pmi2", env["OMPI_COMM_WORLD_RANK"], env["PMIX_RANK"], ErrNoRendezvous)
	case fromSlurm:
		return nil, fmt.Errorf("join the job: started by srun as task %s of %s without PMI: %w; start it with srun --mpi=pmi2, or set "+
			"SLURM_MPI_TYPE=pmi2 in the environment of srun", env["SLURM_PROCID"], env["SLURM_STEP_NUM_TASKS"], ErrNoRendezvous)
	case fromBarePMI:
		return nil, fmt.Errorf("join the job: %s without %s or %s, by which ranks find their launcher, and not rank 0 of 1: %w; start it with pgasrun -n N, mpiexec.hydra -n N, "+
			"or srun --mpi=pmi2, or %s", barePMI(env), pmi.EnvFD, pmi.EnvPort, ErrNoRendezvous, pmi.Alone)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("join the job: %w", context.Cause(ctx))
	}
	return newAlone(), nil
}
