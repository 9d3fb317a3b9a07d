package pgas_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
)

// TestDescribeMemory: what a NIC takes of a rank and maps of a peer is told, too, and what grows with the ranks grows.
func TestDescribeMemory(t *testing.T) {
	when := map[int]int{}
	costs := "PGAS_COSTS=" + t.TempDir() // measured once
	memory := func(ranks int) map[string]string {
		out := map[string]string{}
		for _, f := range pgas.Describe(t.Context(), []string{"PGAS_MAX_PINNED=64M", costs}, ranks) {
			if f.Section == "memory" {
				out[f.Name] = f.Value
			}
			when[ranks] += strings.Count(f.Section, "by costs that were measured on ")
		}
		return out
	}
	few, many := memory(2), memory(64)
	require.Zero(t, when[2])
	require.NotZero(t, when[64], "they were kept, and it is said from when they are")
	for _, name := range []string{"per rank, over soft", "per rank, over tcp", "per peer, over soft", "measuring, over tcp", "small transfers, once there are many"} {
		require.True(t, strings.HasSuffix(few[name], "iB"), "%s: %q", name, few[name])
	}
	require.NotEqual(t, few["per peer, over soft"], many["per peer, over soft"])
	require.NotEqual(t, few["per rank, over tcp"], many["per rank, over tcp"])
	require.NotContains(t, few, "per peer, over tcp")
}

// TestVariablesThatDecide: what tells a launcher from another is among the variables.
func TestVariablesThatDecide(t *testing.T) {
	var names []string
	for _, v := range pgas.Variables(nil) {
		names = append(names, v.Name)
	}
	require.Subset(t, names, []string{
		"PMI_FD", "PMI_PORT", "PMI_ID", "PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
		"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "PGAS_RANK", "PGAS_SIZE", "PGAS_JOB", "PGAS_CONTROL_FD",
	})
}
