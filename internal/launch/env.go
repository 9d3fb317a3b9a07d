package launch

import (
	"strconv"
	"strings"

	"gopgas/internal/control"
	"gopgas/internal/pmi"
)

// Variables by which a rank learns who it is, beside those of PMI.
const (
	EnvRank  = "PGAS_RANK"
	EnvSize  = "PGAS_SIZE"
	EnvStats = "PGAS_STATS" // 1: count, and send the counters at the end

	envLocalRank = "MPI_LOCALRANKID" // as Hydra names them; MPICH and its kin read them
	envLocalSize = "MPI_LOCALNRANKS"
)

// Descriptors that a rank inherits beside the standard three.
const (
	pmiFD     = 3
	controlFD = 4
)

// leftover says whether a variable is how another launcher told this process who it is (L6).
func leftover(name string) bool {
	switch name {
	case pmi.EnvJob, EnvRank, EnvSize, control.EnvFD, "SLURM_PROCID", "SLURM_LOCALID":
		return true
	}
	for _, prefix := range []string{"PMI_", "PMIX_", "OMPI_", "PRTE_", "MPI_LOCAL", "HYDI_", "SLURM_STEP"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// ownEnv is what the launcher tells a rank.
func ownEnv(s *Spec, job string, rank int) []string {
	r, n := strconv.Itoa(rank), strconv.Itoa(s.N)
	own := []string{
		pmi.EnvJob + "=" + job, EnvRank + "=" + r, EnvSize + "=" + n,
		control.EnvFD + "=" + strconv.Itoa(controlFD),
		pmi.EnvFD + "=" + strconv.Itoa(pmiFD), pmi.EnvRank + "=" + r, pmi.EnvSize + "=" + n,
		envLocalRank + "=" + r, envLocalSize + "=" + n,
	}
	if s.Stats {
		own = append(own, EnvStats+"=1")
	}
	return own
}

// rankEnv is the whole environment of a rank: what is handed on, what is set, what the launcher tells; of two values
// for a name the later one stands.
func rankEnv(s *Spec, job string, rank int) []string {
	own := ownEnv(s, job, rank)
	taken := make(map[string]bool, len(own)+len(s.Set))
	env := make([]string, 0, len(s.Env)+len(s.Set)+len(own))
	add := func(from []string, keep func(name string) bool) {
		for i := len(from) - 1; i >= 0; i-- {
			name, _, _ := strings.Cut(from[i], "=")
			if keep(name) && !taken[name] {
				taken[name] = true
				env = append(env, from[i])
			}
		}
	}
	always := func(string) bool { return true }
	add(own, always)
	add(s.Set, always)
	add(s.Env, func(name string) bool { return !leftover(name) })
	return env
}

// Describe returns what Run would start for rank: the environment that differs from Spec.Env, and the arguments. The job's
// name is made anew by each Run and shown as job.
func Describe(s Spec, job string, rank int) (env, argv []string) {
	return append(ownEnv(&s, job, rank), s.Set...), s.argv(rank)
}
