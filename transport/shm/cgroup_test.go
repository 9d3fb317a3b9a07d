package shm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree writes files below a new folder.
func tree(t *testing.T, files map[string]string) string {
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	return root
}

const (
	mountV1  = "35 31 0:32 / /cg/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n36 31 0:33 / /cg/devices rw - cgroup cgroup rw,devices\n"
	mountV2  = "41 31 0:38 / /cg rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
	noLimit1 = "9223372036854771712\n"
)

func TestTightestCgroup(t *testing.T) {
	for name, c := range map[string]struct {
		files       map[string]string
		dir         string // of the tightest; empty: no limit anywhere
		limit, free int64
		file        string
	}{
		"old, own group": {files: map[string]string{
			"proc/self/cgroup":                    "5:devices:/job\n4:memory:/job/step\n0::/other\n",
			"proc/self/mountinfo":                 "26 24 0:24 / /dev/pts rw - devpts devpts rw\n" + mountV1,
			"cg/memory/memory.limit_in_bytes":     noLimit1,
			"cg/memory/memory.usage_in_bytes":     "900\n",
			"cg/memory/job/memory.limit_in_bytes": "5000\n", "cg/memory/job/memory.usage_in_bytes": "100\n",
			"cg/memory/job/step/memory.limit_in_bytes": "1000\n", "cg/memory/job/step/memory.usage_in_bytes": "600\n",
			"cg/memory/job/step/memory.stat": "cache 50\ninactive_file 7\ntotal_inactive_file 20\ntotal_active_file 3\ntotal_unevictable 9\n",
		}, dir: "cg/memory/job/step", limit: 1000, free: 423, file: "memory.limit_in_bytes"},
		"old, the group above is tighter": {files: map[string]string{
			"proc/self/cgroup": "4:memory,hugetlb:/job/step\n", "proc/self/mountinfo": "35 31 0:32 / /cg rw - cgroup cgroup rw,hugetlb,memory\n",
			"cg/job/memory.limit_in_bytes": "5000\n", "cg/job/memory.usage_in_bytes": "4900\n",
			"cg/job/step/memory.limit_in_bytes": "1000\n", "cg/job/step/memory.usage_in_bytes": "600\n",
		}, dir: "cg/job", limit: 5000, free: 100, file: "memory.limit_in_bytes"},
		"old, no limit": {files: map[string]string{
			"proc/self/cgroup": "4:memory:/job\n", "proc/self/mountinfo": mountV1,
			"cg/memory/job/memory.limit_in_bytes": noLimit1, "cg/memory/job/memory.usage_in_bytes": "1\n",
		}},
		"unified, three levels": {files: map[string]string{
			"proc/self/cgroup": "0::/slurm/job_1/step_0\n", "proc/self/mountinfo": mountV2,
			"cg/slurm/memory.max": "max\n", "cg/slurm/memory.current": "7000\n",
			"cg/slurm/job_1/memory.max": "4000\n", "cg/slurm/job_1/memory.current": "3800\n",
			"cg/slurm/job_1/memory.stat":       "anon 100\ninactive_file 30\nactive_file 70\nshmem 500\n",
			"cg/slurm/job_1/step_0/memory.max": "max\n", "cg/slurm/job_1/step_0/memory.current": "10\n",
		}, dir: "cg/slurm/job_1", limit: 4000, free: 300, file: "memory.max"},
		"unified, above its limit": {files: map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountV2, "cg/memory.max": "100\n", "cg/memory.current": "150\n",
		}, dir: "cg", limit: 100, free: -50, file: "memory.max"},
		"container: the mount's root is the group": {files: map[string]string{
			"proc/self/cgroup": "4:memory:/docker/abc\n", "proc/self/mountinfo": "35 31 0:32 /docker/abc /cg/memory rw - cgroup cgroup rw,memory\n",
			"cg/memory/memory.limit_in_bytes": "100\n", "cg/memory/memory.usage_in_bytes": "1\n",
		}, dir: "cg/memory", limit: 100, free: 99, file: "memory.limit_in_bytes"},
		"container: a path that is not mounted": {files: map[string]string{
			"proc/self/cgroup": "0::/../elsewhere\n", "proc/self/mountinfo": mountV2, "cg/memory.max": "100\n", "cg/memory.current": "1\n",
		}, dir: "cg", limit: 100, free: 99, file: "memory.max"},
		"a blank in the mount point": {files: map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": `41 31 0:38 / /c\040g rw - cgroup2 cgroup2 rw` + "\n",
			"c g/memory.max": "100\n", "c g/memory.current": "1\n",
		}, dir: "c g", limit: 100, free: 99, file: "memory.max"},
		"nonsense": {files: map[string]string{
			"proc/self/cgroup": "\n::\nx\n4:memory\n", "proc/self/mountinfo": "- \n\n1 2 3 - cgroup2\n" + mountV1 + mountV2,
			"cg/memory.max": "-5\n", "cg/memory.current": "x\n",
		}},
		"nothing there": {files: map[string]string{"x": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, c.files)
			l := unlimited()
			tightestCgroup(cgroupDirs(Roots{Proc: filepath.Join(root, "proc"), Cgroup: root}), &l)
			if c.dir == "" {
				require.Equal(t, unlimited(), l)
				return
			}
			want := unlimited()
			want.Cgroup = filepath.Join(root, c.dir)
			want.CgroupFile = filepath.Join(want.Cgroup, c.file)
			want.CgroupLimit, want.CgroupFree = c.limit, c.free
			require.Equal(t, want, l)
		})
	}
}
