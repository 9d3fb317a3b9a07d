package shm

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroupDir is one control group that charges this process's memory.
type cgroupDir struct {
	path string
	v2   bool
}

// cgroupDirs finds the control groups that this process's memory is charged to: its own and all above it, in
// the old hierarchy and in the unified one, as far as they are mounted here.
func cgroupDirs(r Roots) []cgroupDir {
	own, err := os.ReadFile(filepath.Join(r.Proc, "self/cgroup"))
	if err != nil {
		return nil
	}
	mounts, err := os.ReadFile(filepath.Join(r.Proc, "self/mountinfo"))
	if err != nil {
		return nil
	}
	var dirs []cgroupDir
	for _, m := range cgroupMounts(string(mounts)) {
		path, ok := cgroupPath(string(own), m.v2)
		if !ok {
			continue
		}
		top := filepath.Join(r.Cgroup, m.point)
		dir := filepath.Join(top, cgroupBelow(path, m.root))
		if _, err := os.Stat(dir); err != nil {
			dir = top // the path counts from a root that is not mounted here: a container
		}
		for ; strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
			dirs = append(dirs, cgroupDir{path: dir, v2: m.v2})
			if dir == top || dir == "/" {
				break
			}
		}
	}
	return dirs
}

type cgroupMount struct {
	root, point string
	v2          bool
}

// cgroupMounts reads the lines of mountinfo that mount the memory controller or the unified hierarchy.
func cgroupMounts(mountinfo string) []cgroupMount {
	var out []cgroupMount
	for line := range strings.Lines(mountinfo) {
		left, right, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(left), strings.Fields(right)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		v1 := g[0] == "cgroup" && hasWord(g[2], "memory")
		if v1 || g[0] == "cgroup2" {
			out = append(out, cgroupMount{root: f[3], point: unescapeMount(f[4]), v2: !v1})
		}
	}
	return out
}

// cgroupPath reads this process's path in the memory hierarchy from the text of /proc/self/cgroup.
func cgroupPath(own string, v2 bool) (string, bool) {
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		if v2 && f[0] == "0" && f[1] == "" || !v2 && hasWord(f[1], "memory") {
			return f[2], true
		}
	}
	return "", false
}

// cgroupBelow is path as seen from a mount whose root is root.
func cgroupBelow(path, root string) string {
	if rest, ok := strings.CutPrefix(path, root); ok && (root == "/" || rest == "" || rest[0] == '/') {
		return rest
	}
	return path
}

// tightestCgroup sets the fields of l that speak of control groups.
func tightestCgroup(dirs []cgroupDir, l *Limits) {
	for _, d := range dirs {
		limitFile, usedFile := "memory.limit_in_bytes", "memory.usage_in_bytes"
		if d.v2 {
			limitFile, usedFile = "memory.max", "memory.current"
		}
		limit, ok := readNumber(filepath.Join(d.path, limitFile))
		// The old hierarchy writes "no limit" as the largest number of whole pages.
		if !ok || limit >= 1<<62 {
			continue
		}
		used, ok := readNumber(filepath.Join(d.path, usedFile))
		if !ok {
			continue
		}
		// Usage holds the page cache, which the kernel gives up before it refuses. Asking how much that is
		// makes the kernel sum over CPUs, so it is asked only of a group that has a limit.
		free := min(limit-used+pageCache(d), limit)
		if free < l.CgroupFree {
			l.Cgroup, l.CgroupLimit, l.CgroupFree = d.path, limit, free
			l.CgroupFile = filepath.Join(d.path, limitFile)
		}
	}
}

// pageCache is the memory of the group that files on disk occupy. Shared memory is not on these lists.
func pageCache(d cgroupDir) int64 {
	stat, err := os.ReadFile(filepath.Join(d.path, "memory.stat"))
	if err != nil {
		return 0
	}
	prefix := "total_" // with the groups below
	if d.v2 {
		prefix = ""
	}
	return fieldOf(stat, prefix+"inactive_file") + fieldOf(stat, prefix+"active_file")
}

// readNumber reads a file that holds one number; "max" is not one.
func readNumber(path string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return n, err == nil && n >= 0
}

// fieldOf returns the number on the line of text that begins with the word name, or 0.
func fieldOf(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) >= 2 && string(f[0]) == name {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// unescapeMount undoes mountinfo's octal escapes of blanks and backslashes.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
