package replay

import "gopgas/internal/trace"

// The shapes. Where the paper or the NAS reports say it, sizes and order of the phases are theirs; the lengths of the
// computation phases are chosen so that an iteration takes about as long as class D on four nodes did in the paper.

// microbenchmark is the paper's figure 1: three buffers, a second of computation after each call.
func microbenchmark(p *program) {
	var bufs [3]uint64
	for i := range bufs {
		bufs[i] = p.buffer(p.c.Bytes)
	}
	p.each(func(int) {
		for i, b := range bufs {
			p.put(uintptr(i), b, p.c.Bytes, 1)
			p.compute(1000 * millisecond)
		}
	})
}

// microbenchmarkNew is the same without reuse: each call has a buffer of its own.
func microbenchmarkNew(p *program) {
	p.each(func(int) {
		for i := range uintptr(3) {
			p.put(i, p.buffer(p.c.Bytes), p.c.Bytes, 1)
			p.compute(1000 * millisecond)
		}
	})
}

// nest is the paper's figure 4: two inner loops, so that the first call of each has another period than the rest. They are
// as short as a window of two can tell apart: of a longer loop it does not see that it is the first or last time round.
func nest(p *program) {
	a, b := p.buffer(p.c.Bytes), p.buffer(p.c.Bytes)
	p.each(func(int) {
		for range 2 {
			p.put(1, a, p.c.Bytes, 1)
			p.compute(20 * millisecond)
		}
		for range 2 {
			p.put(2, b, p.c.Bytes, -1)
			p.compute(35 * millisecond)
		}
	})
}

// multipartition is a time step of BT and SP: the faces of all cells are exchanged with six neighbours at once, then each
// direction is solved by a sweep forward and one back, with a message between two of a rank's cells.
func multipartition(p *program, face, forward, back uint64, rhs, cell int64) {
	const cells = 2
	faces, sweep, sub := p.buffer(6*face), p.buffer(3*forward), p.buffer(3*back)
	p.each(func(int) {
		for i := range uintptr(6) {
			p.put(1+i, faces+uint64(i)*face, face, []int{1, -1, 2, -2, 3, -3}[i])
		}
		p.compute(rhs * millisecond)
		for dir := range uintptr(3) {
			for range cells - 1 {
				p.compute(cell * millisecond)
				p.put(10+dir, sweep+uint64(dir)*forward, forward, int(dir)+1)
			}
			p.compute(cell * millisecond)
			for range cells - 1 {
				p.compute(cell / 2 * millisecond)
				p.put(20+dir, sub+uint64(dir)*back, back, -int(dir)-1)
			}
			p.compute(cell / 2 * millisecond)
		}
	})
}

// bt sends 5 by 5 blocks forward: six times as much as it sends back.
func bt(p *program) { multipartition(p, 2*p.c.Bytes, 6*p.c.Bytes, p.c.Bytes, 300, 80) }

// sp sends little more forward than back.
func sp(p *program) { multipartition(p, 2*p.c.Bytes, 2*p.c.Bytes, p.c.Bytes, 120, 40) }

// lu sweeps over planes with a small message for each, forward and back, then exchanges two large faces in each direction
// while it computes the right-hand side.
func lu(p *program) {
	const planes = 60
	small, faces := p.buffer(1<<14), p.buffer(4*p.c.Bytes)
	p.each(func(int) {
		for sweep := range uintptr(2) {
			for range planes {
				p.put(1+sweep, small, 8000, 1)
				p.compute(4 * millisecond)
			}
		}
		for i := range uintptr(4) {
			p.put(10+i, faces+uint64(i)*p.c.Bytes, p.c.Bytes, []int{1, -1, 2, -2}[i])
			if i%2 == 1 {
				p.compute(120 * millisecond)
			}
		}
	})
}

// cg is 25 conjugate gradient steps an iteration: sums of pieces with the ranks of a row, an exchange with the transposed
// rank, two tiny reductions, and little computation between.
func cg(p *program) {
	const steps = 25
	w, q, r := p.buffer(p.c.Bytes), p.buffer(p.c.Bytes), p.buffer(p.c.Bytes)
	p.each(func(int) {
		for range steps {
			p.compute(12 * millisecond)
			p.put(1, w, p.c.Bytes, 1)
			p.compute(2 * millisecond)
			p.put(2, q, p.c.Bytes, 2)
			p.put(3, p.c.Bytes, 8, 1)
			p.compute(4 * millisecond)
			p.put(3, p.c.Bytes, 8, 1)
		}
		p.compute(12 * millisecond)
		p.put(4, w, p.c.Bytes, 1)
		p.put(5, r, p.c.Bytes, 2)
		p.compute(3 * millisecond)
	})
}

// ft evolves, transforms along two dimensions, and transposes by sending each other rank its block, from one of two
// arrays in turn, and back from a third.
func ft(p *program) {
	n := uint64(p.c.Ranks)
	block := p.c.Bytes / n
	u1, u2 := p.buffer(p.c.Bytes), p.buffer(p.c.Bytes)
	transpose := func(line uintptr, u uint64) {
		for k := 1; k < p.c.Ranks; k++ {
			to := (p.rank + k) % p.c.Ranks
			p.putTo(line, u+uint64(to)*block, block, k, u+uint64(p.rank)*block)
		}
	}
	p.each(func(int) {
		p.compute(500 * millisecond)
		transpose(1, u1)
		p.compute(350 * millisecond)
		transpose(2, u2)
		p.compute(150 * millisecond)
	})
}

// scatter reads blocks from anywhere in a table that is spread over all ranks, as programs do that gather by an index: no two
// places are near each other, and each is as likely as any other. It is no program of the paper's.
func scatter(p *program) {
	const block, reads = 4096, 64
	table, got := p.buffer(p.c.Bytes), p.buffer(reads*block)
	places := max(1, p.c.Bytes/block)
	p.each(func(int) {
		for i := range uint64(reads) {
			step := 1
			if p.c.Ranks > 2 {
				step += p.rng.IntN(p.c.Ranks - 1)
			}
			p.transfer(trace.Get, 1, got+i*block, block, step, table+p.rng.Uint64N(places)*block)
		}
		p.compute(millisecond)
	})
}
