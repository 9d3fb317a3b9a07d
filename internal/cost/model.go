package cost

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"
)

// ErrModel is wrapped by the errors of Read and Named.
var ErrModel = errors.New("cost model")

// Model is what things cost on one machine with one NIC.
type Model struct {
	Name       string   `json:"name"`
	Notes      []string `json:"notes,omitempty"` // where the numbers come from; K3
	PageBytes  int      `json:"page_bytes"`
	Register   Line     `json:"register"`
	Deregister Line     `json:"deregister"`
	Copy       Curve    `json:"copy,omitempty"`    // of user memory to or from registered buffers
	Post       float64  `json:"ns_post,omitempty"` // one operation handed to the NIC
	Lookup     float64  `json:"ns_lookup"`         // a hit in the registration cache, acquired and released
	Compare    float64  `json:"ns_compare"`        // one comparison in a queue
	Hash       float64  `json:"ns_hash,omitempty"` // a use that a predictor takes in: its signature, a look into the table of call sites, the update; 0: not known
	// Slice is how long a thread keeps a core that others wait for, and Swap what it takes to go on with the next; 0: not known.
	Slice float64 `json:"ns_slice,omitempty"`
	Swap  float64 `json:"ns_swap,omitempty"`
	// Transfer is the time from post to completion, by size; empty where it was not measured.
	Transfer Curve `json:"transfer,omitempty"`
	// PostLine is the cost of handing over operations at once, by their number, of which Post is the first; nil where it was not measured.
	PostLine *Line `json:"post,omitempty"`
	// RegisterSamples, DeregisterSamples and PostSamples are what the lines were fitted to.
	RegisterSamples   []Sample `json:"register_samples,omitempty"`
	DeregisterSamples []Sample `json:"deregister_samples,omitempty"`
	PostSamples       []Sample `json:"post_samples,omitempty"`
}

// Pages returns how many pages so many bytes take that begin on a page.
func (m *Model) Pages(bytes int) int { return (bytes + m.PageBytes - 1) / m.PageBytes }

// OnDemand is what a transfer of so many bytes pays for memory that is registered and deregistered for it.
func (m *Model) OnDemand(bytes int) time.Duration {
	p := m.Pages(bytes)
	return m.Register.Mean(p) + m.Deregister.Mean(p)
}

// LeastRegistered returns the size in bytes from which on a transfer from registered memory, found in the cache, costs
// this rank no more than a copy, at least least: the first power of two of which that is true.
func (m *Model) LeastRegistered(least int) int {
	const most = 1 << 30
	n := 64
	for n < most && (n < least || m.Copy.At(n) < nanos(m.Lookup)) {
		n *= 2
	}
	return n
}

// Write writes the model as JSON.
func (m *Model) Write(w io.Writer) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("%w %s: %w", ErrModel, m.Name, err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// Read reads what Write wrote. K4.
func Read(r io.Reader) (Model, error) {
	var m Model
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Model{}, fmt.Errorf("%w: read: %w; `pgasrun info --calibrate --write FILE` writes one", ErrModel, err)
	}
	if err := m.check(); err != nil {
		return Model{}, fmt.Errorf("%w %q: %w", ErrModel, m.Name, err)
	}
	return m, nil
}

func (m *Model) check() error {
	if m.PageBytes <= 0 || m.PageBytes&(m.PageBytes-1) != 0 {
		return fmt.Errorf("page_bytes is %d: want a power of two", m.PageBytes)
	}
	for name, f := range map[string]float64{"ns_post": m.Post, "ns_lookup": m.Lookup, "ns_compare": m.Compare, "ns_hash": m.Hash, "ns_slice": m.Slice, "ns_swap": m.Swap} {
		if !(f >= 0) {
			return fmt.Errorf("%s is %v: want a number from zero on", name, f)
		}
	}
	if m.PostLine != nil {
		if err := m.PostLine.check("post"); err != nil {
			return err
		}
	}
	return errors.Join(m.Register.check("register"), m.Deregister.check("deregister"), m.Copy.check("copy"), m.Transfer.check("transfer"))
}

// Named returns the model with a paper's constants of that name.
func Named(name string) (Model, error) {
	m, ok := named()[name]
	if !ok {
		return Model{}, fmt.Errorf("%w %q: want one of: %s", ErrModel, name, strings.Join(Names(), ", "))
	}
	m.Name = name
	return m, nil
}

// Names lists the named models.
func Names() []string {
	var all []string
	for n := range named() {
		all = append(all, n)
	}
	sort.Strings(all)
	return all
}

// straight is a curve of constant rate, in bytes per second, after a fixed time.
func straight(fixed, rate float64) Curve {
	var c Curve
	for n := 64; n <= 64<<20; n *= 4 {
		c = append(c, Sample{n, fixed + float64(n)/rate*1e9})
	}
	return c
}

func named() map[string]Model {
	return map[string]Model{
		// Li et al., CF 2011.
		"helper-threads": {
			PageBytes: 4096, Register: Line{A: 575, B: 5000, Residual: 1000}, Deregister: Line{A: 175, B: 3000, Residual: 1000},
			Copy: straight(100, 2.5e9), Transfer: straight(4000, 1.4e9), Post: 300, Lookup: 90, Compare: 5,
			Notes: []string{
				"printed: lock of a region 18 ns, 72 ns contended; time stamp 150-200 cycles of 2.8 GHz; lookup is the sum of 18 and 71 ns",
				"derived: register and deregister together 0.75 us a page, so that not left pinned takes 25.83 % longer at 5 MB (figure 2)",
				"assumed: transfer 1.4 GB/s and 4 us (ConnectX, DDR); 575 + 175 as the split of the 750 ns; fixed costs 5 and 3 us; copy 2.5 GB/s; post, compare, residuals",
			},
		},
		// Denis, Euro-Par 2011.
		"superpipeline": {
			PageBytes: 4096, Register: Line{A: 200, B: 68000}, Deregister: Line{A: 50, B: 20000},
			Copy: straight(50, 5.2e9), Transfer: straight(1200, 2e9), Post: 300, Lookup: 50, Compare: 5,
			Notes: []string{
				"printed: registration 68 us + 200 ns a page",
				"derived: transfer 2 GB/s, latency 1.2 us (between 0.8 and 1.6), copy of large sizes 5.2 GB/s",
				"assumed: deregistration 20 us + 50 ns a page; post, lookup, compare",
			},
		},
	}
}
