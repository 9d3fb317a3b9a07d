package crew

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEnvironmentOfARank(t *testing.T) {
	p := Plan{
		Job: "job", Size: 9, First: 3, Count: 4, Stats: true, Set: []string{"A=new", "PMI_TRACE=1"},
		Env: []string{
			"A=old", "HOME=/h", "PATH=/bin", "PATH=/usr/bin", "PGAS_TRANSPORT=shm", "PGAS_RANK=9", "PGAS_JOB=outer", "PGAS_CONTROL_FD=7",
			"PMI_FD=9", "PMI_PORT=h:1", "PMIX_RANK=1", "OMPI_COMM_WORLD_RANK=1", "PRTE_LAUNCHED=1", "MPI_LOCALRANKID=3", "HYDI_CONTROL_FD=8",
			"SLURM_PROCID=1", "SLURM_LOCALID=1", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4", "SLURM_JOB_ID=12",
		},
	}
	require.ElementsMatch(t, []string{
		"PGAS_JOB=job", "PGAS_RANK=5", "PGAS_SIZE=9", "PGAS_CONTROL_FD=4", "PMI_FD=3", "PMI_RANK=5", "PMI_SIZE=9",
		"MPI_LOCALRANKID=2", "MPI_LOCALNRANKS=4", "PGAS_STATS=1",
		"A=new", "PMI_TRACE=1",
		"HOME=/h", "PATH=/usr/bin", "PGAS_TRANSPORT=shm", "SLURM_JOB_ID=12",
	}, rankEnv(&p, 5))
	env, argv := Describe(Plan{Job: "JOB", Size: 1, Count: 1, Argv: []string{"x", "y"}, Set: []string{"B=c"}}, 0)
	require.Contains(t, env, "PGAS_JOB=JOB")
	require.Contains(t, env, "B=c")
	require.Equal(t, []string{"x", "y"}, argv)
}

func TestLists(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []int
		out  string
	}{
		{"0", []int{0}, "0"}, {"0,2-4", []int{0, 2, 3, 4}, "0,2-4"}, {"5-6, 1,1-2", []int{5, 6, 1, 2}, "1-2,5-6"},
	} {
		got, err := ParseList(c.in, 7)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		require.Equal(t, c.out, FormatList(got))
	}
	for _, bad := range []string{"", "x", "7", "3-1", "-1", "1-", "0,,1", "0-9999999999"} {
		_, err := ParseList(bad, 7)
		require.ErrorContains(t, err, "from 0 to 6", bad)
	}
}

func TestBindings(t *testing.T) {
	cpus := []cpu{{0, 0, 0}, {1, 1, 0}, {2, 2, 1}, {3, 3, 1}, {4, 0, 0}, {5, 1, 0}, {6, 2, 1}, {7, 3, 1}}
	for _, c := range []struct {
		b    Binding
		n    int
		want [][]int
	}{
		{BindNone, 2, [][]int{nil, nil}},
		{BindCore, 2, [][]int{{0, 4}, {1, 5}}},
		{BindCore, 5, [][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 4}}},
		{BindNUMA, 1, [][]int{{0, 1, 4, 5}}},
		{BindNUMA, 3, [][]int{{0, 1, 4, 5}, {0, 1, 4, 5}, {2, 3, 6, 7}}},
	} {
		require.Equal(t, c.want, bindings(c.b, c.n, cpus))
	}
	require.Equal(t, "is bound to processors 2,6 of memory node 1", describeBinding([]int{2, 6}, cpus))
	require.Equal(t, "is not bound: processors 0-7", describeBinding(nil, cpus))
}
