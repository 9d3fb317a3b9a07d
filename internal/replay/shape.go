package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gopgas/internal/predict"
	"gopgas/internal/trace"
)

// ShapeConfig is what a synthetic trace is made with. Zero fields take the shape's own values.
type ShapeConfig struct {
	Ranks      int
	Iterations int
	Bytes      uint64  // scale: of the microbenchmarks' messages, of a large face or block of the others
	Pace       float64 // factor of all computation phases; 0: 1
	Noise      float64 // standard deviation of a computation phase's length, as a part of it; it only lengthens
	Spikes     float64 // part of the phases that something disturbs: a twentieth to a fifth longer
	Bandwidth  float64 // bytes per nanosecond of a transfer
	Latency    predict.Nanos
	Seed       uint64
}

// shapes are the programs that synthetic traces can have the form of.
var shapes = map[string]struct {
	iterations int
	bytes      uint64
	run        func(*program)
}{
	"reuse":   {10, 4 << 20, microbenchmark},
	"noreuse": {10, 4 << 20, microbenchmarkNew},
	"nest":    {20, 1 << 20, nest},
	"bt":      {60, 1664 << 10, bt},
	"lu":      {60, 3 << 20, lu},
	"sp":      {100, 1664 << 10, sp},
	"cg":      {15, 6 << 20, cg},
	"ft":      {25, 64 << 20, ft},
	"scatter": {50, 16 << 20, scatter},
}

// Shapes returns the names of all shapes.
func Shapes() []string {
	var names []string
	for n := range shapes {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Synthesize makes a trace of that shape. Equal arguments make equal traces.
func Synthesize(shape string, c ShapeConfig) ([]*trace.File, error) {
	s, ok := shapes[shape]
	if !ok {
		return nil, fmt.Errorf("shape %q: want one of %q", shape, Shapes())
	}
	if c.Ranks == 0 {
		c.Ranks = 4
	}
	if c.Iterations == 0 {
		c.Iterations = s.iterations
	}
	if c.Bytes == 0 {
		c.Bytes = s.bytes
	}
	if c.Pace == 0 {
		c.Pace = 1
	}
	if c.Bandwidth == 0 {
		c.Bandwidth = 1.4 // DDR InfiniBand
	}
	if c.Latency == 0 {
		c.Latency = 2000
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("shape %s: %w", shape, err)
	}
	var files []*trace.File
	for rank := range c.Ranks {
		p := &program{c: c, rank: rank, rng: rand.New(rand.NewPCG(c.Seed, uint64(rank)))}
		p.file = &trace.File{Head: trace.Head{Rank: rank, Ranks: c.Ranks, Node: rank}, Format: 2}
		s.run(p)
		p.aim()
		files = append(files, p.file)
	}
	return files, nil
}

// check refuses what no trace can be made of: times and addresses go up to 2^63.
func (c ShapeConfig) check() error {
	for _, v := range []struct {
		name               string
		value, least, most float64
	}{
		{"ranks", float64(c.Ranks), 1, 1 << 16},
		{"iterations", float64(c.Iterations), 1, 1 << 20},
		{"bytes", float64(c.Bytes), 1, mostBytes / 8}, // some send six times as much at once
		{"noise", c.Noise, 0, 100},
		{"spikes", c.Spikes, 0, 1},
		{"pace", c.Pace, 0, 1e6},
		{"bandwidth", c.Bandwidth, 1e-6, 1e6},
		{"latency", float64(c.Latency), 0, 1e12},
	} {
		if !(v.value >= v.least && v.value <= v.most) { // nor what is no number
			return fmt.Errorf("%s %v: want %v to %v", v.name, v.value, v.least, v.most)
		}
	}
	return nil
}

// program writes the trace of one rank as it goes along.
type program struct {
	c    ShapeConfig
	rank int
	rng  *rand.Rand
	now  predict.Nanos
	top  uint64 // of the addresses given out
	file *trace.File
}

const millisecond predict.Nanos = 1e6

// bottom is the address of all that a rank has. It is exposed as a whole.
const bottom = 1 << 32

// aim fills in how much every rank exposes: all do the same. What lies elsewhere is in nobody's memory.
func (p *program) aim() {
	for i := range p.file.Events {
		if e := &p.file.Events[i]; e.Addr >= bottom && e.Peer >= 0 {
			e.To = trace.Range{ID: 1, Start: bottom, Bytes: p.top}
		}
	}
}

// buffer returns memory of its own.
func (p *program) buffer(bytes uint64) uint64 {
	addr := bottom + p.top
	p.top += (bytes + pageBytes - 1) / pageBytes * pageBytes
	return addr
}

// compute lets about d pass.
func (p *program) compute(d predict.Nanos) {
	late := p.rng.NormFloat64() * p.c.Noise
	late = max(late, -late)
	if p.rng.Float64() < p.c.Spikes {
		late += 0.05 + 0.15*p.rng.Float64()
	}
	p.now += predict.Nanos(float64(d) * p.c.Pace * (1 + late))
}

// put transfers bytes from addr, called from the given line, to the peer that many ranks on.
func (p *program) put(line uintptr, addr, bytes uint64, step int) {
	p.putTo(line, addr, bytes, step, addr)
}

// putTo is put to another address than the one at home.
func (p *program) putTo(line uintptr, addr, bytes uint64, step int, to uint64) {
	p.transfer(trace.Put, line, addr, bytes, step, to)
}

func (p *program) transfer(kind trace.Kind, line uintptr, addr, bytes uint64, step int, to uint64) {
	took := p.c.Latency + predict.Nanos(float64(bytes)/p.c.Bandwidth)
	peer := ((p.rank+step)%p.c.Ranks + p.c.Ranks) % p.c.Ranks
	if peer == p.rank {
		peer = -1 // alone: somebody far away
	}
	e := trace.Event{At: p.now, Took: took, Addr: addr, Bytes: bytes, Peer: int32(peer), Kind: kind}
	if to >= bottom {
		e.Off = to - bottom
	}
	e.Stack[0], e.Stack[1] = 0x400000+line, 0x500000
	p.file.Events = append(p.file.Events, e)
	p.now += took
}

// each runs the main loop.
func (p *program) each(body func(i int)) {
	for i := range p.c.Iterations {
		body(i)
	}
}
