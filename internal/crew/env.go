package crew

import (
	"slices"
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

	envTimeline = "PGAS_TIMELINE" // a folder for what ranks did when
	envTrace    = "PGAS_TRACE"    // a folder for traces of their puts and gets

	envLocalRank = "MPI_LOCALRANKID" // as Hydra names them; MPICH and its kin read them
	envLocalSize = "MPI_LOCALNRANKS"
)

// Descriptors that a rank inherits beside the standard three.
const (
	pmiFD     = 3
	controlFD = 4
)

// leftover says whether a variable is how another launcher told this process who it is (W2).
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

// outers returns whether a variable in env is how an outer launcher, a rank of which started this one, or whoever called that one, has its ranks write files
// by rank: those of other jobs would take the place of theirs.
func outers(env []string) func(name string) bool {
	within := slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, pmi.EnvJob+"=") })
	return func(name string) bool { return within && (name == envTimeline || name == envTrace) }
}

// Withheld names what is set in env, is not in set, and is not handed on because it is for the ranks of an outer job.
func Withheld(env, set []string) (names []string) {
	outers := outers(env)
	for _, name := range []string{envTimeline, envTrace} {
		is := func(e string) bool { return strings.HasPrefix(e, name+"=") && len(e) > len(name)+1 }
		if outers(name) && slices.ContainsFunc(env, is) && !slices.ContainsFunc(set, is) {
			names = append(names, name)
		}
	}
	return names
}

// ownEnv is what the launcher tells a rank.
func ownEnv(p *Plan, rank int) []string {
	r, n := strconv.Itoa(rank), strconv.Itoa(p.Size)
	own := []string{
		pmi.EnvJob + "=" + p.Job, EnvRank + "=" + r, EnvSize + "=" + n,
		control.EnvFD + "=" + strconv.Itoa(controlFD),
		pmi.EnvFD + "=" + strconv.Itoa(pmiFD), pmi.EnvRank + "=" + r, pmi.EnvSize + "=" + n,
		envLocalRank + "=" + strconv.Itoa(rank-p.First), envLocalSize + "=" + strconv.Itoa(p.Count),
	}
	if p.Stats {
		own = append(own, EnvStats+"=1")
	}
	return own
}

// rankEnv is the whole environment of a rank: what is handed on, what is set, what the launcher tells; of two values
// for a name the later one stands.
func rankEnv(p *Plan, rank int) []string {
	own := ownEnv(p, rank)
	taken := make(map[string]bool, len(own)+len(p.Set))
	env := make([]string, 0, len(p.Env)+len(p.Set)+len(own))
	add := func(from []string, keep func(name string) bool) {
		for i := len(from) - 1; i >= 0; i-- {
			name, _, _ := strings.Cut(from[i], "=")
			if keep(name) && !taken[name] {
				taken[name] = true
				env = append(env, from[i])
			}
		}
	}
	always, outers := func(string) bool { return true }, outers(p.Env)
	add(own, always)
	add(p.Set, always)
	add(p.Env, func(name string) bool { return !leftover(name) && !outers(name) })
	return env
}

// Describe returns what Start would start for rank: the environment that differs from Plan.Env, and the arguments.
func Describe(p Plan, rank int) (env, argv []string) {
	return append(ownEnv(&p, rank), p.Set...), p.argv(rank)
}
