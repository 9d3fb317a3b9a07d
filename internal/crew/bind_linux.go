package crew

import (
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// usableCPUs returns the hardware threads that the launcher may use, in the order of their numbers. sys is
// /sys/devices/system; what it does not tell, in a container for instance, is taken for one thread a core and one node.
func usableCPUs(sys fs.FS) ([]cpu, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	nodes := map[int]int{}
	found, _ := fs.Glob(sys, "node/node*/cpulist")
	for _, name := range found {
		var node int
		if _, err := fmt.Sscanf(name, "node/node%d/", &node); err != nil {
			continue
		}
		for _, id := range readList(sys, name) {
			nodes[id] = node
		}
	}
	var cpus []cpu
	for id := range len(set) * 64 {
		if !set.IsSet(id) {
			continue
		}
		c := cpu{id: id, core: id, node: nodes[id]}
		if threads := readList(sys, fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", id)); len(threads) > 0 {
			c.core = threads[0]
		}
		cpus = append(cpus, c)
	}
	return cpus, nil
}

// readList reads a list of processors, nil if it is not there.
func readList(sys fs.FS, name string) []int {
	text, err := fs.ReadFile(sys, name)
	if err != nil {
		return nil
	}
	ids, err := ParseList(strings.TrimSpace(string(text)), 1<<20)
	if err != nil {
		return nil
	}
	return ids
}

// bindThread binds the calling thread, and what it starts; nil leaves it alone.
func bindThread(ids []int) error {
	if ids == nil {
		return nil
	}
	var set unix.CPUSet
	for _, id := range ids {
		set.Set(id)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("bind to processors %s: %w", FormatList(ids), err)
	}
	return nil
}
