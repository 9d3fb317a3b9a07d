package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

const mib = 1 << 20

func TestCheckLimits(t *testing.T) {
	want := need{what: "64.0 MiB for a test", memory: 64 * mib, file: 64 * mib, address: 64 * mib, maps: 1}
	inDir := want
	inDir.dir = 64 * mib
	for name, c := range map[string]struct {
		n                need
		set              func(*Limits)
		found, need, how string // empty found: it fits
	}{
		"nothing known":          {n: want, set: func(*Limits) {}},
		"memory, exactly":        {n: want, set: func(l *Limits) { l.Available = 64 * mib }},
		"memory":                 {want, func(l *Limits) { l.Available = 64*mib - 1 }, "64.0 MiB of memory available", "64.0 MiB", "fewer ranks"},
		"control group, exactly": {n: want, set: func(l *Limits) { l.CgroupFree = 64 * mib }},
		"control group": {want, func(l *Limits) {
			l.Cgroup, l.CgroupLimit, l.CgroupFree, l.CgroupFile = "/g", 100*mib, 12*mib, "/g/memory.max"
		}, "12.0 MiB free of 100.0 MiB in the control group /g", "64.0 MiB", "/g/memory.max"},
		"control group, exceeded": {want, func(l *Limits) { l.CgroupLimit, l.CgroupFree = 100*mib, -5 }, "0 bytes free", "64.0 MiB", "--mem"},
		"commit limit, not used":  {n: want, set: func(l *Limits) { l.CommitFree = 0 }},
		"commit limit":            {want, func(l *Limits) { l.StrictCommit, l.CommitFree = true, 3*mib }, "3.0 MiB left of the commit limit", "64.0 MiB", "vm.overcommit"},
		"file size, exactly":      {n: want, set: func(l *Limits) { l.FileSize = 64 * mib }},
		"file size":               {want, func(l *Limits) { l.FileSize = 1 * mib }, "1.0 MiB as the largest file (RLIMIT_FSIZE)", "64.0 MiB", "ulimit -f"},
		"address space, exactly":  {n: want, set: func(l *Limits) { l.AddressSpace, l.AddressUsed = 100*mib, 36*mib }},
		"address space":           {want, func(l *Limits) { l.AddressSpace, l.AddressUsed = 100*mib, 37*mib }, "63.0 MiB of address space left of 100.0 MiB", "64.0 MiB", "ulimit -v"},
		"address space, exceeded": {want, func(l *Limits) { l.AddressSpace, l.AddressUsed = 100*mib, 101*mib }, "0 bytes of address space", "64.0 MiB", "ulimit -v"},
		"mappings, exactly":       {n: want, set: func(l *Limits) { l.MaxMaps, l.MapsUsed = 65530, 65530-1024-1 }},
		"mappings":                {want, func(l *Limits) { l.MaxMaps, l.MapsUsed = 65530, 65530-1024 }, "64506 of 65530 mappings in use, 1024 of them kept", "1 more", "vm.max_map_count=129014"},
		"few mappings":            {n: want, set: func(l *Limits) { l.MaxMaps, l.MapsUsed = 800, 699 }},
		"too few mappings":        {want, func(l *Limits) { l.MaxMaps, l.MapsUsed = 800, 700 }, "700 of 800", "1 more", "vm.max_map_count="},
		"descriptors":             {need{what: "x", files: 1}, func(l *Limits) { l.OpenFiles, l.FilesUsed = 64, 64 }, "64 of 64 file descriptors", "1 more", "ulimit -n 130"},
		"folder, not used":        {n: want, set: func(l *Limits) { l.DirFree = 0 }},
		"folder, exactly":         {n: inDir, set: func(l *Limits) { l.DirFree = 64 * mib }},
		"folder on a tmpfs":       {inDir, func(l *Limits) { l.Dir, l.DirFree, l.DirSize, l.DirMemory = "/dev/shm", 12*mib, 64*mib, true }, "12.0 MiB free of 64.0 MiB on /dev/shm", "64.0 MiB", "mount -o remount,size=180M /dev/shm"},
		"folder on a disk":        {inDir, func(l *Limits) { l.Dir, l.DirFree, l.DirSize = "/tmp", 0, 64*mib }, "0 bytes free of 64.0 MiB on /tmp", "64.0 MiB", "free space on /tmp"},
		"the process comes first": {want, func(l *Limits) { l.FileSize, l.Available = 0, 0 }, "RLIMIT_FSIZE", "64.0 MiB", "ulimit -f"},
	} {
		t.Run(name, func(t *testing.T) {
			l := unlimited()
			c.set(&l)
			err := checkLimits(c.n, l)
			if c.found == "" {
				require.NoError(t, err)
				return
			}
			var limit *transport.LimitError
			require.ErrorAs(t, err, &limit)
			require.Equal(t, c.n.what, limit.What)
			require.Contains(t, limit.Found, c.found)
			require.Contains(t, limit.Needed, c.need)
			require.Contains(t, limit.Setting, c.how)
		})
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 64 * mib: "64.0 MiB", 3 << 39: "1.5 TiB", 1 << 62: "4.0 EiB", Unlimited: "no limit",
	} {
		require.Equal(t, want, size(bytes))
	}
}
