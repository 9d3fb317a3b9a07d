package grid

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
)

// indices calls f for all indices of a shape, the last dimension quickest.
func indices(shape []int, f func(at []int)) {
	at := make([]int, len(shape))
	if slices.Contains(shape, 0) {
		return
	}
	for {
		f(at)
		d := len(at) - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < shape[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// randomLayout is a shape, and a layout of it, verified by fit. pick(n) is less than n.
func randomLayout(t *testing.T, n int, pick func(n int) int) ([]int, Config) {
	shape, p := make([]int, n), 1
	c := Config{Parts: make([]int, n), Ghost: make([]int, n), Periodic: make([]bool, n), Blocks: make([][]int, n), Faces: pick(2) == 0}
	for d := range n {
		shape[d] = pick(6) + pick(2)
		c.Parts[d] = 1 + pick(3)
		p *= c.Parts[d]
		c.Ghost[d] = pick(3)
		c.Periodic[d] = pick(2) == 0
		if pick(3) == 0 {
			rest := shape[d]
			for range c.Parts[d] - 1 {
				k := pick(rest + 1)
				c.Blocks[d] = append(c.Blocks[d], k)
				rest -= k
			}
			c.Blocks[d] = append(c.Blocks[d], rest)
		}
	}
	fitted, err := c.fit(shape, p)
	require.NoError(t, err)
	require.Equal(t, c.Parts, fitted.Parts, "nothing was left to choose")
	return shape, fitted
}

// TestOwners: every element has the owner and the place that dealing out part by part gives it, and no two have the same (N1).
func TestOwners(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range 150 {
		n := 1 + round%5
		shape, c := randomLayout(t, n, rng.IntN)
		l := newLayout(shape, c)
		p := 1
		for _, k := range c.Parts {
			p *= k
		}
		seen := 0
		for member := range p {
			coords := l.coords(member)
			require.Equal(t, member, l.member(&coords))
			extents, inside := make([]int, n), make([]int, n)
			for d := range n {
				extents[d] = l.extent(d, coords[d])
				inside[d] = l.starts[d][coords[d]+1] - l.starts[d][coords[d]]
			}
			place := 0
			indices(extents, func(at []int) {
				global, own := make([]int, n), true
				for d, i := range at {
					k := i - c.Ghost[d]
					own = own && k >= 0 && k < inside[d]
					global[d] = l.starts[d][coords[d]] + k
				}
				if own {
					m, disp := l.owner(global)
					require.Equal(t, [2]int{member, place}, [2]int{m, disp}, "element %v of %v, %+v", global, shape, c)
					seen++
				}
				place++
			})
			_, all := l.strides(&coords)
			require.Equal(t, place, all)
			require.LessOrEqual(t, all, l.room())
		}
		all := 1
		for _, k := range shape {
			all *= k
		}
		require.Equal(t, all, seen)
		require.Equal(t, all == 0, l.empty())
	}
}

// moved are the elements of the walk through a box, by place in the caller's slice, which has room for them.
func moved(t *testing.T, l *layout, ls *lines, room int) [][2]int {
	out := make([][2]int, room)
	for i := range out {
		out[i][0] = -1
	}
	for w := l.walk(ls, 0, ls.packed(l.n)); w.more; w.next() {
		p := w.piece
		for r := range p.Rows {
			for c := range p.Cols {
				near := p.Near + r*p.NearStride + c*p.NearStep
				require.Equal(t, -1, out[near][0], "place %d is named twice", near)
				out[near] = [2]int{p.Target, p.Disp + r*p.Stride + c*p.Step}
			}
		}
	}
	return out
}

// walks compares the walk through a random box with its elements one by one (N2).
func walks(t *testing.T, n int, pick func(n int) int) {
	shape, c := randomLayout(t, n, pick)
	l := newLayout(shape, c)
	b := Box{Lo: make([]int, n), Hi: make([]int, n), Step: make([]int, n)}
	around := pick(2) == 0
	for d, size := range shape {
		b.Lo[d] = pick(size + 1)
		b.Hi[d] = b.Lo[d] + pick(size-b.Lo[d]+1)
		if around && size > 0 {
			b.Lo[d] = pick(4*size) - 2*size
			b.Hi[d] = b.Lo[d] + pick(3*size)
		}
		b.Step[d] = pick(2 + pick(4))
	}
	ls, err := l.lines(b, b.Len(), around)
	require.NoError(t, err, "%v of %v", b, shape)
	got, i := moved(t, &l, &ls, b.Len()), 0
	indices(b.Shape(), func(at []int) {
		global := make([]int, n)
		for d, k := range at {
			global[d] = b.Lo[d] + k*max(1, b.Step[d])
			if around {
				global[d] = ((global[d] % shape[d]) + shape[d]) % shape[d]
			}
		}
		m, disp := l.owner(global)
		require.Equal(t, [2]int{m, disp}, got[i], "element %v of box %v of %v, %+v", at, b, shape, c)
		i++
	})
	require.Len(t, got, i)
}

func TestWalks(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for round := range 700 {
		walks(t, 1+round%5, rng.IntN)
	}
}

func FuzzWalks(f *testing.F) {
	f.Add([]byte{3, 4, 1, 1, 0, 0, 5, 2, 2, 1, 0, 1, 9, 8, 7, 1, 2, 3})
	f.Add([]byte{5, 255, 254, 1, 200, 17, 5, 99, 3, 4, 5, 6, 1, 0, 0, 1, 2, 2, 1, 4, 1, 1, 7})
	f.Fuzz(func(t *testing.T, data []byte) {
		pick := func(n int) int {
			if len(data) == 0 || n <= 1 {
				return 0
			}
			k := int(data[0]) % n
			data = data[1:]
			return k
		}
		walks(t, 1+pick(4), pick)
	})
}

// TestSlabs: the slabs of a frame hold each ghost cell that shows something once, and none of the block's own elements.
func TestSlabs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for round := range 150 {
		n := 1 + round%4
		shape, c := randomLayout(t, n, rng.IntN)
		l := newLayout(shape, c)
		p := 1
		for _, k := range c.Parts {
			p *= k
		}
		for member := range p {
			coords := l.coords(member)
			by, all := l.strides(&coords)
			times, want := make([]int, all), make([]int, all)
			for _, s := range l.slabs(&coords) {
				lens := make([]int, n)
				for d := range n {
					lens[d] = s.lines.of[d].n
				}
				indices(lens, func(at []int) {
					place := s.from
					for d, i := range at {
						place += i * s.near[d]
					}
					times[place]++
				})
			}
			extents, empty := make([]int, n), false
			for d := range n {
				extents[d] = l.extent(d, coords[d])
				empty = empty || extents[d] == 2*c.Ghost[d]
			}
			indices(extents, func(at []int) {
				place, own, shows, beside := 0, true, !empty, 0
				for d, i := range at {
					place += i * by[d]
					k := i - c.Ghost[d]
					if k < 0 || k >= extents[d]-2*c.Ghost[d] {
						own = false
						beside++
					}
					k += l.starts[d][coords[d]]
					shows = shows && (c.Periodic[d] || k >= 0 && k < shape[d])
				}
				if shows && !own && (beside == 1 || !c.Faces) {
					want[place] = 1
				}
			})
			require.Equal(t, want, times, "%v %+v, member %d", shape, c, member)
		}
	}
}

// TestSections: a box takes as few sections as its memory allows.
func TestSections(t *testing.T) {
	whole := func(shape []int) Box { return Box{Lo: make([]int, len(shape)), Hi: shape} }
	for _, c := range []struct {
		name        string
		shape       []int
		config      Config
		box         Box
		count, rows int
	}{
		{"blocks of whole rows are one run each", []int{8, 5, 6}, Config{Parts: []int{2, 1, 1}}, whole([]int{8, 5, 6}), 2, 2},
		{"a plane of another cut has a row for each run", []int{8, 6, 6}, Config{Parts: []int{1, 1, 2}}, whole([]int{8, 6, 6}), 2, 96},
		{"frames part the rows", []int{4, 4, 4}, Config{Parts: []int{1, 1, 1}, Ghost: []int{1, 1, 1}}, whole([]int{4, 4, 4}), 4, 16},
		{"an inner cut", []int{4, 4, 4}, Config{Parts: []int{1, 2, 1}}, whole([]int{4, 4, 4}), 2, 8},
		{"a column", []int{9, 9, 9}, Config{Parts: []int{1, 1, 1}}, Box{Lo: []int{0, 4, 4}, Hi: []int{9, 5, 5}}, 1, 1},
		{"steps", []int{9, 9}, Config{Parts: []int{1, 1}}, Box{Lo: []int{0, 0}, Hi: []int{9, 9}, Step: []int{2, 2}}, 1, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLayout(c.shape, c.config)
			ls, err := l.lines(c.box, c.box.Len(), false)
			require.NoError(t, err)
			count, rows := 0, 0
			for w := l.walk(&ls, 0, ls.packed(l.n)); w.more; w.next() {
				count++
				rows += w.piece.Rows
			}
			require.Equal(t, [2]int{c.count, c.rows}, [2]int{count, rows})
		})
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		shape, parts []int
		p            int
		want         []int
	}{
		{[]int{100, 100, 100}, []int{0, 0, 0}, 8, []int{2, 2, 2}},
		{[]int{100, 100, 100}, []int{0, 0, 0}, 2, []int{2, 1, 1}},
		{[]int{100, 100, 100}, []int{0, 0, 0}, 12, []int{3, 2, 2}},
		{[]int{4, 1000, 1000}, []int{0, 0, 0}, 4, []int{1, 2, 2}},
		{[]int{1000, 10}, []int{0, 0}, 6, []int{6, 1}},
		{[]int{10, 1000}, []int{0, 0}, 6, []int{1, 6}},
		{[]int{100, 100}, []int{0, 3}, 6, []int{2, 3}},
		{[]int{2, 2, 2}, []int{0, 0, 0}, 7, []int{7, 1, 1}},
		{[]int{0, 5}, []int{0, 0}, 6, []int{6, 1}},
		{[]int{7}, []int{0}, 1, []int{1}},
		{[]int{64, 64, 64, 64, 64, 64, 64}, []int{0, 0, 0, 0, 0, 0, 0}, 128, []int{2, 2, 2, 2, 2, 2, 2}},
		{[]int{100, 100}, []int{4, 0}, 6, nil},
		{[]int{100, 100}, []int{4, 2}, 6, nil},
		{[]int{100, 100}, []int{-2, -3}, 6, nil},
	} {
		require.Equal(t, c.want, choose(c.shape, c.parts, c.p), "%v %v %d", c.shape, c.parts, c.p)
	}
}

func TestConfigsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		shape []int
		c     Config
		want  error
		says  string
	}{
		{nil, Config{}, pgas.ErrRange, "0 dimensions, needed from 1 to 7"},
		{make([]int, 8), Config{}, pgas.ErrRange, "8 dimensions"},
		{[]int{4, -1}, Config{}, pgas.ErrRange, "-1 elements in dimension 1"},
		{[]int{1<<31 + 1}, Config{}, pgas.ErrRange, "needed from 0 to 2147483648"},
		{[]int{4, 4}, Config{Parts: []int{6}}, pgas.ErrConfig, "Parts for 1 dimensions, and the array has 2"},
		{[]int{4, 4}, Config{Ghost: []int{1}}, pgas.ErrConfig, "Ghost for 1"},
		{[]int{4, 4}, Config{Periodic: make([]bool, 3)}, pgas.ErrConfig, "Periodic for 3"},
		{[]int{4, 4}, Config{Blocks: make([][]int, 3)}, pgas.ErrConfig, "Blocks for 3"},
		{[]int{4, 4}, Config{Ghost: []int{0, -1}}, pgas.ErrConfig, "width -1 in dimension 1"},
		{[]int{4, 4}, Config{Parts: []int{4, 0}}, pgas.ErrConfig, "a grid of [4 0] blocks for a team of 6"},
		{[]int{4, 4}, Config{Blocks: [][]int{{1, 2}, nil}}, pgas.ErrConfig, "blocks of [1 2] in dimension 0; needed 2 lengths, 4 together"},
		{[]int{4, 4}, Config{Blocks: [][]int{{5, -1}, nil}}, pgas.ErrConfig, "blocks of [5 -1]"},
		{[]int{4, 4}, Config{Blocks: [][]int{{2, 2}, nil}, Parts: []int{3, 0}}, pgas.ErrConfig, "needed 3 lengths"},
		{[]int{1 << 30, 1 << 30}, Config{}, pgas.ErrRange, "a part has more than"},
	} {
		_, err := c.c.fit(c.shape, 6)
		require.ErrorIs(t, err, c.want)
		require.ErrorContains(t, err, c.says)
	}
}

// TestNoBlocks: Blocks that are empty say as much as none.
func TestNoBlocks(t *testing.T) {
	for _, blocks := range [][][]int{nil, {}, {nil, nil}} {
		c, err := Config{Blocks: blocks}.fit([]int{4, 5}, 2)
		require.NoError(t, err)
		l := newLayout([]int{4, 5}, c)
		require.Equal(t, [][]int{{0, 2, 4}, {0, 5}}, l.starts[:2])
	}
}

func TestBoxesThatCannotBe(t *testing.T) {
	l := newLayout([]int{4, 5}, Config{Parts: []int{1, 1}})
	const largest = int(^uint(0) >> 1)
	for _, c := range []struct {
		b      Box
		near   int
		around bool
		says   string
	}{
		{Box{Lo: []int{0}, Hi: []int{1}}, 1, false, "1, 1 and 0 numbers of an array of 2 dimensions"},
		{Box{Lo: []int{0, 0}, Hi: []int{1}}, 1, false, "2, 1 and 0 numbers"},
		{Box{Lo: []int{0, 0}, Hi: []int{1, 1}, Step: []int{1}}, 1, false, "2, 2 and 1 numbers"},
		{Box{Lo: []int{0, -1}, Hi: []int{1, 1}}, 2, false, "dimension 1 needed 0 <= Lo <= Hi <= 5"},
		{Box{Lo: []int{0, 0}, Hi: []int{5, 5}}, 25, false, "dimension 0 needed 0 <= Lo <= Hi <= 4"},
		{Box{Lo: []int{3, 0}, Hi: []int{2, 5}}, 0, false, "box [3:2 0:5] of an array of [4 5]"},
		{Box{Lo: []int{9, 0}, Hi: []int{9, 5}}, 0, false, "dimension 0 needed 0 <= Lo <= Hi <= 4"},
		{Box{Lo: []int{0, 0}, Hi: []int{4, 5}, Step: []int{1, -1}}, 20, false, "box [0:4 0:5:-1]"},
		{Box{Lo: []int{0, 0}, Hi: []int{largest, 1}}, 4, false, "Hi <= 4"},
		{Box{Lo: []int{0, 0}, Hi: []int{4, 5}, Step: []int{largest, largest}}, 2, false, "a slice of 2 elements"},
		{Box{Lo: []int{0, 0}, Hi: []int{4, 5}}, 19, false, "a slice of 19 elements for box [0:4 0:5], which has 20"},
		{Box{Lo: []int{-largest - 1, 0}, Hi: []int{largest, 1}}, 4, true, "dimension 0 needed -70368744177664"},
		{Box{Lo: []int{0, 0}, Hi: []int{1 << 40, 1 << 40}}, 0, true, "more than 70368744177664 elements"},
	} {
		_, err := l.lines(c.b, c.near, c.around)
		require.ErrorIs(t, err, pgas.ErrRange, "%v", c.b)
		require.ErrorContains(t, err, c.says)
	}
	none := newLayout([]int{0, 5}, Config{Parts: []int{1, 1}})
	_, err := none.lines(Box{Lo: []int{0, 0}, Hi: []int{1, 5}}, 5, true)
	require.ErrorContains(t, err, "which has no elements")
	for _, b := range []Box{{Lo: []int{4, 5}, Hi: []int{4, 5}}, {Lo: []int{0, 2}, Hi: []int{4, 2}}, {Lo: []int{0, 2}, Hi: []int{4, 2}, Step: []int{0, 9}}} {
		ls, err := l.lines(b, 0, false)
		require.NoError(t, err)
		require.Zero(t, ls.len)
	}
	require.Equal(t, "[0:4:3 1:2]", Box{Lo: []int{0, 1}, Hi: []int{4, 2}, Step: []int{3, 1}}.String())
	require.Equal(t, 4, Box{Lo: []int{0, 1}, Hi: []int{4, 3}, Step: []int{3, 0}}.Len())
}
