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
	size, _ := strconv.Atoi(env[pmi.EnvSize])
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
	case size > 1:
		return fromBarePMI
	}
	return fromNothing
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
		return nil, fmt.Errorf("join the job: %s=%q and %s=%s without %s or %s: %w; start it with pgasrun -n N, mpiexec.hydra -n N, or srun --mpi=pmi2, "+
			"or unset %s to run it alone", pmi.EnvRank, env[pmi.EnvRank], pmi.EnvSize, env[pmi.EnvSize], pmi.EnvFD, pmi.EnvPort, ErrNoRendezvous, pmi.EnvSize)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("join the job: %w", context.Cause(ctx))
	}
	return newAlone(), nil
}
