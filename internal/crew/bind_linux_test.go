package crew

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTopologyFromFiles(t *testing.T) {
	var mine unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &mine))
	sys := fstest.MapFS{"node/node3/cpulist": {Data: []byte("0-9999\n")}}
	for id := range 1024 {
		sys[fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", id)] = &fstest.MapFile{Data: []byte("0,512\n")}
	}
	cpus, err := usableCPUs(sys)
	require.NoError(t, err)
	require.Len(t, cpus, mine.Count())
	for _, c := range cpus {
		require.Equal(t, cpu{c.id, 0, 3}, c)
	}
	cpus, err = usableCPUs(fstest.MapFS{})
	require.NoError(t, err)
	for _, c := range cpus {
		require.Equal(t, cpu{c.id, c.id, 0}, c)
	}
}
