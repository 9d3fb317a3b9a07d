package dashboard

import (
	"cmp"
	"maps"
	"slices"

	"gopgas/internal/control"
)

// mostCells is the number of rows and columns of the largest matrix (D3).
const mostCells = 64

// snapshot is /state.json.
type snapshot struct {
	Program string              `json:"program"`
	Seconds float64             `json:"seconds"` // since the start
	Every   float64             `json:"every"`   // seconds between two questions to a rank
	Ranks   []rankNow           `json:"ranks"`
	Group   int                 `json:"group"` // ranks that share a row and a column of the matrix
	Flows   map[string][]flow   `json:"flows"` // by transport, ordered
	Paths   []pathNow           `json:"paths"`
	Extra   map[string]*extreme `json:"extra"`
	History series              `json:"history"`
}

type rankNow struct {
	Rank   int       `json:"rank"`
	PID    int       `json:"pid"`
	Node   string    `json:"node"`
	State  string    `json:"state"`
	Ended  string    `json:"ended,omitempty"`
	Silent float64   `json:"silent"` // seconds since the last answer
	Waits  []waitNow `json:"waits"`
	Bytes  uint64    `json:"bytes"`
	Ops    uint64    `json:"ops"`
	Reg    float64   `json:"registered"` // bytes
	Heap   float64   `json:"heap"`       // bytes
}

type waitNow struct {
	Op     string  `json:"op"`
	Peer   int     `json:"peer"`
	Since  float64 `json:"seconds"`
	Where  string  `json:"where"`
	Detail string  `json:"detail,omitempty"`
}

// flow is a cell of the matrix: row, column, operations, bytes.
type flow [4]uint64

type pathNow struct {
	Via  string `json:"via"`
	Name string `json:"path"`
	control.Path
}

// extreme is a counter over all ranks.
type extreme struct {
	Sum  float64 `json:"sum"`
	Most float64 `json:"most"`
	Rank int     `json:"rank"` // that has the most
}

// snapshot returns the job as it is now.
func (b *Board) snapshot() snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	s := snapshot{
		Program: b.job.Program, Seconds: now.Sub(b.began).Seconds(), Every: b.job.Every.Seconds(),
		Group: (len(b.ranks) + mostCells - 1) / mostCells, Extra: make(map[string]*extreme), History: b.history.series(),
	}
	for i := range b.ranks {
		r := &b.ranks[i]
		n := rankNow{
			Rank: i, PID: r.pid, Node: r.last.Node, State: b.state(r, now), Ended: r.ended, Waits: []waitNow{},
		}
		if r.ended == "" {
			n.Reg, n.Heap = r.last.Extra["reg.bytes"], r.last.Extra["heap.used"]
		}
		if !r.asked.IsZero() {
			n.Silent = now.Sub(r.asked).Seconds()
		}
		if n.State == stateWaits || n.State == stateSilent {
			for _, w := range r.last.Waits {
				n.Waits = append(n.Waits, waitNow{w.Op, w.Peer, w.Since.Seconds() + n.Silent, w.Where, w.Detail})
			}
		}
		for _, paths := range r.last.Transports {
			for _, p := range paths {
				n.Bytes, n.Ops = n.Bytes+p.Bytes, n.Ops+p.Ops
			}
		}
		for name, v := range r.last.Extra {
			e := s.Extra[name]
			if e == nil {
				e = &extreme{Most: v, Rank: i}
				s.Extra[name] = e
			}
			e.Sum += v
			if v > e.Most {
				e.Most, e.Rank = v, i
			}
		}
		s.Ranks = append(s.Ranks, n)
	}
	s.Flows, s.Paths = b.flowsLocked(s.Group), b.pathsLocked()
	return s
}

// flowsLocked is the traffic matrix of each transport, with group ranks in a row.
func (b *Board) flowsLocked(group int) map[string][]flow {
	cells := make(map[string]map[[2]uint64]*flow)
	for i := range b.ranks {
		for c, p := range b.ranks[i].flows {
			if cells[c.via] == nil {
				cells[c.via] = make(map[[2]uint64]*flow)
			}
			at := [2]uint64{uint64(i / group), uint64(c.with / group)}
			f := cells[c.via][at]
			if f == nil {
				f = &flow{at[0], at[1]}
				cells[c.via][at] = f
			}
			f[2] += p.Ops
			f[3] += p.Bytes
		}
	}
	out := make(map[string][]flow)
	for via, all := range cells {
		for _, f := range all {
			out[via] = append(out[via], *f)
		}
		slices.SortFunc(out[via], func(a, b flow) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	}
	return out
}

// pathsLocked adds the paths of all ranks up.
func (b *Board) pathsLocked() []pathNow {
	sums := make(map[[2]string]control.Path)
	for i := range b.ranks {
		for via, paths := range b.ranks[i].last.Transports {
			for path, p := range paths {
				at := [2]string{via, path}
				s := sums[at]
				sums[at] = control.Path{Ops: s.Ops + p.Ops, Bytes: s.Bytes + p.Bytes, Waits: s.Waits + p.Waits}
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	out := make([]pathNow, len(keys))
	for i, k := range keys {
		out[i] = pathNow{k[0], k[1], sums[k]}
	}
	return out
}
