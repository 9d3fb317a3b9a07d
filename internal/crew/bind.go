package crew

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Binding says which processors a rank may use.
type Binding uint8

// Bindings.
const (
	BindNone Binding = iota // all that the process that starts it may use
	BindCore                // a core with its hardware threads; ranks beyond the cores begin again at the first
	BindNUMA                // the cores of one memory node; ranks are spread evenly in blocks
)

// cpu is a hardware thread.
type cpu struct {
	id   int
	core int // the lowest id among the threads of its core
	node int // of memory
}

// bindings returns the processors of each of n ranks, nil for all. It is pure.
func bindings(b Binding, n int, cpus []cpu) [][]int {
	out := make([][]int, n)
	if b == BindNone {
		return out
	}
	key := func(c cpu) int {
		if b == BindNUMA {
			return c.node
		}
		return c.core
	}
	var groups [][]int
	at := map[int]int{}
	for _, c := range cpus {
		i, ok := at[key(c)]
		if !ok {
			i = len(groups)
			at[key(c)] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c.id)
	}
	if len(groups) == 0 {
		return out
	}
	for r := range out {
		if b == BindNUMA {
			out[r] = groups[r*len(groups)/n]
		} else {
			out[r] = groups[r%len(groups)]
		}
	}
	return out
}

// describeBinding says to what a rank was bound.
func describeBinding(ids []int, cpus []cpu) string {
	if ids == nil {
		all := make([]int, len(cpus))
		for i, c := range cpus {
			all[i] = c.id
		}
		return fmt.Sprintf("is not bound: processors %s", FormatList(all))
	}
	node := -1
	for _, c := range cpus {
		if c.id == ids[0] {
			node = c.node
		}
	}
	return fmt.Sprintf("is bound to processors %s of memory node %d", FormatList(ids), node)
}

// FormatList writes numbers as the kernel does: 0-3,8.
func FormatList(ids []int) string {
	ids = slices.Sorted(slices.Values(ids))
	var parts []string
	for i := 0; i < len(ids); {
		k := i
		for k+1 < len(ids) && ids[k+1] == ids[k]+1 {
			k++
		}
		part := strconv.Itoa(ids[i])
		if k > i {
			part += "-" + strconv.Itoa(ids[k])
		}
		parts = append(parts, part)
		i = k + 1
	}
	return strings.Join(parts, ",")
}

// ParseList reads what FormatList writes, with numbers from 0 to below most.
func ParseList(s string, most int) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		lo, err := strconv.Atoi(from)
		hi := lo
		if err == nil && isRange {
			hi, err = strconv.Atoi(to)
		}
		if err != nil || lo < 0 || hi < lo || hi >= most {
			return nil, fmt.Errorf("%q: wanted numbers and ranges such as 0,2-3, from 0 to %d", s, most-1)
		}
		for i := lo; i <= hi; i++ {
			if !slices.Contains(out, i) {
				out = append(out, i)
			}
		}
	}
	return out, nil
}
