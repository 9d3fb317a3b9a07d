package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gopgas/internal/ledger"
	"gopgas/internal/mem"
)

// machineInfo lists the limits that jobs meet, with the cure for each.
func machineInfo() []infoSection {
	host, _ := os.Hostname()
	return []infoSection{
		{"this machine", []infoRow{
			{"host", host, ""},
			{"kernel", cmp.Or(ledger.Kernel(), "unknown"), runtime.GOOS + "/" + runtime.GOARCH},
			{"cores", strconv.Itoa(runtime.NumCPU()), "usable by this process; more ranks than that take turns"},
			{"memory", memory(), ""},
			{"page size", mem.Text(uint64(os.Getpagesize())), ""},
			largePagesRow("/sys/kernel/mm/transparent_hugepage"),
		}},
		{"limits", []infoRow{
			limitRow("locked memory", unix.RLIMIT_MEMLOCK, true, "per process, for registered memory; ulimit -l, or LimitMEMLOCK= of the service"),
			limitRow("open files", unix.RLIMIT_NOFILE, false, "a rank is 4 of the launcher's; ulimit -n"),
			limitRow("processes", unix.RLIMIT_NPROC, false, "of this user; ulimit -u"),
			limitRow("address space", unix.RLIMIT_AS, true, "per process; ulimit -v"),
			shmRow(),
			{"mappings", fileText("/proc/sys/vm/max_map_count"), "per process; sysctl vm.max_map_count"},
			cgroupRow("memory of the control group", cgroupFiles("memory.max", "memory/memory.limit_in_bytes"), "memory.max of the group, --memory of the container"),
			cgroupRow("processes of the control group", cgroupFiles("pids.max", "pids/pids.max"), "pids.max of the group, --pids-limit of the container"),
			{"ptrace scope", fileText("/proc/sys/kernel/yama/ptrace_scope"), "0: any process of this user may copy another's memory; 1: only where that one allows it, as ranks do; 2 and 3: none, so that long collectives of Go memory go through outboxes"},
		}},
	}
}

// largePagesRow tells where much memory lies in pages of 2 MiB or so.
func largePagesRow(dir string) infoRow {
	chosen := func(file string) string {
		_, word, _ := strings.Cut(fileText(filepath.Join(dir, file)), "[")
		word, _, _ = strings.Cut(word, "]")
		return cmp.Or(word, "unknown")
	}
	return infoRow{
		"large pages", fmt.Sprintf("%s, of shared memory %s", chosen("enabled"), chosen("shmem_enabled")),
		"windows and buffers of 4 MiB and more over a NIC are faster with madvise or always, and mapped windows with advise or always; " + dir + "/enabled, shmem_enabled",
	}
}

func memory() string {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "unknown"
	}
	total, free := memField(b, "MemTotal"), memField(b, "MemAvailable")
	return fmt.Sprintf("%s, %s available", mem.Text(total), mem.Text(free))
}

func memField(meminfo []byte, name string) uint64 {
	for sc := bufio.NewScanner(bytes.NewReader(meminfo)); sc.Scan(); {
		if v, ok := strings.CutPrefix(sc.Text(), name+":"); ok {
			n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

func limitRow(name string, which int, isBytes bool, note string) infoRow {
	var r unix.Rlimit
	if err := unix.Getrlimit(which, &r); err != nil {
		return infoRow{name, "unknown", err.Error()}
	}
	text := func(n uint64) string {
		switch {
		case n == unix.RLIM_INFINITY&(1<<64-1):
			return "unlimited"
		case isBytes:
			return mem.Text(n)
		}
		return strconv.FormatUint(n, 10)
	}
	v := text(r.Cur)
	if r.Max != r.Cur {
		v += ", can be raised to " + text(r.Max)
	}
	return infoRow{name, v, note}
}

func shmRow() infoRow {
	row := infoRow{name: "/dev/shm", note: "shared memory of all jobs; mount -o remount,size=SIZE /dev/shm, --shm-size of the container"}
	var st unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &st); err != nil {
		row.value = "none (" + err.Error() + ")"
		return row
	}
	row.value = fmt.Sprintf("%s, %s free", mem.Text(st.Blocks*uint64(st.Bsize)), mem.Text(st.Bavail*uint64(st.Bsize)))
	return row
}

// cgroupFiles lists where a control group's limit may stand: version 2 in the group of this process and above it, version 1
// in its controller's tree.
func cgroupFiles(v2, v1 string) []string {
	var files []string
	b, _ := os.ReadFile("/proc/self/cgroup")
	controller, file := filepath.Split(v1)
	controller = strings.TrimSuffix(controller, "/")
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		base, name := "/sys/fs/cgroup", v2
		if f[0] != "0" {
			if !strings.Contains(","+f[1]+",", ","+controller+",") {
				continue
			}
			base, name = filepath.Join(base, controller), file
		}
		for dir := f[2]; ; dir = filepath.Dir(dir) {
			files = append(files, filepath.Join(base, dir, name))
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return files
}

// cgroupRow shows the tightest of the limits in files.
func cgroupRow(name string, files []string, note string) infoRow {
	tightest := uint64(1<<63 - 1)
	for _, f := range files {
		if n, err := strconv.ParseUint(fileText(f), 10, 64); err == nil {
			tightest = min(tightest, n)
		}
	}
	switch {
	case tightest >= 1<<60: // version 1 says "none" as a huge number
		return infoRow{name, "no limit", note}
	case strings.HasPrefix(name, "memory"):
		return infoRow{name, mem.Text(tightest), note}
	}
	return infoRow{name, strconv.FormatUint(tightest, 10), note}
}

func fileText(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}
