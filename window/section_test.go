package window_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// randomSection makes a section around which a part of n elements and a slice of m are large enough now and then.
func randomSection(rng *rand.Rand, n int) (s window.Section, disp, m int) {
	s = window.Section{Rows: rng.IntN(6), Cols: rng.IntN(7)}
	s.Step, s.NearStep = 1+rng.IntN(3), 1+rng.IntN(3)
	if rng.IntN(2) == 0 {
		s.Step, s.NearStep = 1, 1
	}
	s.Stride, s.NearStride = s.Cols*s.Step+rng.IntN(4), s.Cols*s.NearStep+rng.IntN(4)
	switch rng.IntN(8) {
	case 0:
		s.Stride = -s.Stride
	case 1:
		s.Step = -s.Step
	case 2:
		s.NearStep = -s.NearStep
	}
	return s, rng.IntN(n+3) - 1, rng.IntN(60)
}

// places are the elements of a section, at the target and in the slice, in order; ok is false if one is outside.
func places(s window.Section, disp, n, m int) (far, near []int, ok bool) {
	for row := range s.Rows {
		for col := range s.Cols {
			f, k := disp+row*s.Stride+col*s.Step, row*s.NearStride+col*s.NearStep
			if f < 0 || f >= n || k < 0 || k >= m {
				return nil, nil, false
			}
			far, near = append(far, f), append(near, k)
		}
	}
	// An empty section is one anywhere.
	return far, near, len(far) == 0 || disp >= 0 && disp < n
}

// sections moves random sections to and from the next rank and compares with plain slices.
func sections[T comparable](ctx context.Context, t *testing.T, w *pgas.World, n, rounds int, value func(i int) T) error {
	win, err := window.Allocate[T](ctx, w.Team(), n)
	if err != nil {
		return err
	}
	next := (w.Rank() + 1) % w.Size()
	theirs := make([]T, n)
	rng := rand.New(rand.NewPCG(11, uint64(w.Rank())))
	done, refused := 0, 0
	for round := range rounds {
		s, disp, m := randomSection(rng, n)
		src := make([]T, m)
		for i := range src {
			src[i] = value(round*m + i)
		}
		far, near, ok := places(s, disp, n, m)
		perr := putSection(ctx, win, round%2 == 1, next, disp, src, s)
		dst, want := make([]T, m), make([]T, m)
		gerr := getSection(ctx, win, round%2 == 1, next, disp, dst, s)
		if !ok {
			require.ErrorIs(t, perr, window.ErrRange, "%+v at %d of %d, slice of %d", s, disp, n, m)
			require.ErrorIs(t, gerr, window.ErrRange)
			refused++
			continue
		}
		require.NoError(t, errors.Join(perr, gerr), "%+v at %d of %d, slice of %d", s, disp, n, m)
		for k := range far {
			theirs[far[k]] = src[near[k]]
		}
		if err := win.Flush(next); err != nil {
			return err
		}
		for k := range far {
			want[near[k]] = theirs[far[k]]
		}
		clear(dst)
		if err := getSection(ctx, win, round%4 > 1, next, disp, dst, s); err != nil {
			return err
		}
		require.Equal(t, want, dst, "%+v at %d", s, disp)
		done++
		if s.Rows == 1 && s.Cols > 0 { // the same by its other name
			clear(dst)
			if err := win.GetStrided(next, disp, s.Step, dst, s.NearStep, s.Cols); err != nil {
				return err
			}
			require.Equal(t, want, dst)
			if err := win.PutStrided(next, disp, s.Step, src, s.NearStep, s.Cols); err != nil {
				return err
			}
		}
	}
	require.Greater(t, done, rounds/5)
	require.Positive(t, refused)
	all := make([]T, n)
	if err := errors.Join(win.Flush(next), win.Get(next, 0, all)); err != nil {
		return err
	}
	require.Equal(t, theirs, all, "nothing beside the sections has changed")
	require.NoError(t, win.PutSection(next, 0, nil, window.Section{}))
	require.ErrorIs(t, win.PutSection(w.Size(), 0, nil, window.Section{}), window.ErrTarget)
	return win.Free(ctx)
}

// putSection is PutSection, blocking or not.
func putSection[T any](ctx context.Context, w *window.Window[T], nb bool, target, disp int, src []T, s window.Section) error {
	if !nb {
		return w.PutSection(target, disp, src, s)
	}
	hs, err := w.PutSectionNB(target, disp, src, s)
	return errors.Join(err, hs.Wait(ctx))
}

// getSection is GetSection, blocking or not.
func getSection[T any](ctx context.Context, w *window.Window[T], nb bool, target, disp int, dst []T, s window.Section) error {
	if !nb {
		return w.GetSection(target, disp, dst, s)
	}
	hs, err := w.GetSectionNB(target, disp, dst, s)
	return errors.Join(err, hs.Wait(ctx))
}

func TestSections(t *testing.T) {
	pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		if err := sections(ctx, t, w, 80, 60, func(i int) int32 { return int32(i + 1) }); err != nil {
			return err
		}
		return sections(ctx, t, w, 300, 60, func(i int) [3]byte { return [3]byte{byte(i), 1, byte(i >> 8)} })
	})
}

// TestSectionsLargerThanAnything: rows larger than a slot, and more of them than a chain is long.
func TestSectionsLargerThanAnything(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, c := range []struct{ rows, cols, stride int }{{3, 70_000, 90_000}, {300, 3, 5}, {70, 400, 401}} {
			win, err := window.Allocate[byte](ctx, w.Team(), c.rows*c.stride)
			if err != nil {
				return err
			}
			src := fill[byte](c.rows*c.cols, 5)
			s := window.Packed(c.rows, c.cols, c.stride)
			if err := errors.Join(win.PutSection(1-w.Rank(), 0, src, s), win.Fence(ctx)); err != nil {
				return err
			}
			for i, b := range win.Local() {
				want := byte(0)
				if row, col := i/c.stride, i%c.stride; col < c.cols {
					want = src[row*c.cols+col]
				}
				if b != want {
					require.Equal(t, want, b, "byte %d", i)
				}
			}
			dst := make([]byte, len(src))
			if err := win.GetSection(1-w.Rank(), 0, dst, s); err != nil {
				return err
			}
			require.True(t, slices.Equal(src, dst))
			// The same without waiting.
			if err := w.Barrier(ctx); err != nil { // all have looked at their parts
				return err
			}
			again := fill[byte](len(src), 6)
			more, err := win.PutSectionNB(1-w.Rank(), 0, again, s)
			if err := errors.Join(err, more.Wait(ctx), win.Fence(ctx)); err != nil {
				return err
			}
			clear(dst)
			hs, err := win.GetSectionNB(1-w.Rank(), 0, dst, s)
			if err := errors.Join(err, hs.Wait(ctx)); err != nil {
				return err
			}
			require.True(t, hs.Done() && more.Done())
			require.NoError(t, hs.Wait(ctx), "a second time")
			require.True(t, slices.Equal(again, dst))
			if err := win.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestSectionsOutOfReason(t *testing.T) {
	const most = int(^uint(0) >> 1)
	pgastest.Run(t, 1, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int8](ctx, w.Team(), 10)
		if err != nil {
			return err
		}
		buf := make([]int8, 10)
		for _, s := range []window.Section{
			{Rows: -1, Cols: 1},
			{Rows: 1, Cols: -1},
			{Rows: 2, Cols: 1, Stride: most},
			{Rows: 2, Cols: 1, Stride: -most - 1},
			{Rows: 3, Cols: 1, Stride: -most},
			{Rows: most, Cols: 2, NearStep: 1, Step: 1, Stride: 1},
			{Rows: most, Cols: most, Stride: most, Step: most},
			{Rows: 2, Cols: 2, Stride: 1 << 62, Step: 1 << 62},
			{Rows: 2, Cols: 1, NearStride: most},
		} {
			require.ErrorIs(t, win.PutSection(0, 5, buf, s), window.ErrRange, "%+v", s)
			require.ErrorIs(t, win.GetSection(0, 5, buf, s), window.ErrRange, "%+v", s)
			hs, err := win.GetSectionNB(0, 5, buf, s)
			require.ErrorIs(t, err, window.ErrRange, "%+v", s)
			require.Empty(t, hs)
			_, err = win.PutSectionNB(0, 5, buf, s)
			require.ErrorIs(t, err, window.ErrRange, "%+v", s)
		}
		return win.Free(ctx)
	})
}

func TestIndexed(t *testing.T) {
	pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const n = 200
		win, err := window.Allocate[int64](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		next := (w.Rank() + 1) % w.Size()
		rng := rand.New(rand.NewPCG(3, uint64(w.Rank())))
		theirs := make([]int64, n)
		for round := range 30 {
			block := 1 + rng.IntN(3)
			if round%2 == 0 {
				block = 1
			}
			order := rng.Perm(n / block)[:rng.IntN(n/block)]
			disps := make([]int, len(order))
			src := make([]int64, len(order)*block)
			for i, k := range order {
				disps[i] = k * block
				for j := range block {
					src[i*block+j] = int64(1000*round + i)
					theirs[k*block+j] = src[i*block+j]
				}
			}
			if err := errors.Join(win.PutIndexed(next, disps, src), win.Flush(next)); err != nil {
				return err
			}
			dst := make([]int64, len(src))
			if err := win.GetIndexed(next, disps, dst); err != nil {
				return err
			}
			require.Equal(t, src, dst)
			if block == 1 {
				clear(dst)
				at := func(i int) (int, int) { return next, disps[i] }
				require.NoError(t, win.Gather(dst, at))
				require.Equal(t, src, dst)
			}
		}
		all := make([]int64, n)
		if err := win.Get(next, 0, all); err != nil {
			return err
		}
		require.Equal(t, theirs, all)
		buf := make([]int64, 4)
		require.ErrorIs(t, win.PutIndexed(next, []int{0, 1, 2}, buf), window.ErrRange, "4 elements for 3 places")
		require.ErrorIs(t, win.GetIndexed(next, nil, buf), window.ErrRange)
		require.ErrorIs(t, win.PutIndexed(next, []int{0, n - 1}, buf), window.ErrRange)
		require.ErrorIs(t, win.GetIndexed(next, []int{-1, 0}, buf), window.ErrRange)
		require.ErrorIs(t, win.GetIndexed(-1, []int{0, 1}, buf), window.ErrTarget)
		require.NoError(t, win.PutIndexed(next, nil, nil))
		require.NoError(t, win.PutIndexed(next, []int{n, n}, nil), "nothing goes anywhere up to the end")
		return win.Free(ctx)
	})
}

// TestScatterAndGather over all members in one call.
func TestScatterAndGather(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const each = 50
		win, err := window.Allocate[int32](ctx, w.Team(), each)
		if err != nil {
			return err
		}
		// Element k of all is element k / size of member k % size; this rank sets those with its number as a remainder
		// by a second division, in an order of its own.
		all := each * w.Size()
		rng := rand.New(rand.NewPCG(8, uint64(w.Rank())))
		var mine []int
		for _, k := range rng.Perm(all) {
			if k/w.Size()%w.Size() == w.Rank() {
				mine = append(mine, k)
			}
		}
		src := make([]int32, len(mine))
		for i, k := range mine {
			src[i] = int32(k + 1)
		}
		at := func(i int) (int, int) { return mine[i] % w.Size(), mine[i] / w.Size() }
		if err := errors.Join(win.Scatter(src, at), win.Fence(ctx)); err != nil {
			return err
		}
		for disp, v := range win.Local() {
			require.EqualValues(t, disp*w.Size()+w.Rank()+1, v)
		}
		perm := rng.Perm(all)
		dst := make([]int32, all)
		if err := win.Gather(dst, func(i int) (int, int) { return perm[i] % w.Size(), perm[i] / w.Size() }); err != nil {
			return err
		}
		for i, k := range perm {
			require.EqualValues(t, k+1, dst[i])
		}
		for _, bad := range [][2]int{{w.Size(), 0}, {-1, 0}, {0, each}, {0, -1}} {
			at := func(i int) (int, int) {
				if i == 1 {
					return bad[0], bad[1]
				}
				return 0, 0
			}
			require.Error(t, win.Scatter([]int32{-7, -7, -7}, at))
			require.Error(t, win.Gather(make([]int32, 3), at))
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		require.NotEqual(t, int32(-7), win.Local()[0], "nothing has moved")
		return win.Free(ctx)
	})
}

// TestSectionsOfSeveral moves pieces of all members in one call and compares with plain slices.
func TestSectionsOfSeveral(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const n, room = 120, 400
		win, err := window.Allocate[int32](ctx, w.Team(), n*w.Size())
		if err != nil {
			return err
		}
		base := n * w.Rank() // what this rank uses of every part
		want := make([][]int32, w.Size())
		for m := range want {
			want[m] = make([]int32, n)
		}
		rng := rand.New(rand.NewPCG(12, uint64(w.Rank())))
		for round := range 20 {
			src, dst, back := make([]int32, room), make([]int32, room), make([]int32, room)
			for i := range src {
				src[i] = int32(room*round + i + 1)
			}
			var pieces []window.Piece
			taken := make(map[[2]int]bool) // elements and places that a piece has already: what comes twice has no order
			for range rng.IntN(12) {
				s, disp, _ := randomSection(rng, n)
				p := window.Piece{Target: rng.IntN(w.Size()), Disp: base + max(disp, 0), Near: rng.IntN(room), Section: s}
				far, near, ok := places(s, max(disp, 0), n, room-p.Near)
				for k := range far {
					ok = ok && !taken[[2]int{p.Target, far[k]}] && !taken[[2]int{-1, p.Near + near[k]}]
				}
				if !ok {
					continue
				}
				for k := range far {
					taken[[2]int{p.Target, far[k]}], taken[[2]int{-1, p.Near + near[k]}] = true, true
					want[p.Target][far[k]] = src[p.Near+near[k]]
					back[p.Near+near[k]] = src[p.Near+near[k]]
				}
				pieces = append(pieces, p)
			}
			if err := errors.Join(win.PutSections(src, pieces), win.FlushAll(), win.GetSections(dst, pieces)); err != nil {
				return err
			}
			require.Equal(t, back, dst, "%+v", pieces)
			ok := window.Piece{Section: window.Packed(1, 1, 1), Disp: base}
			for _, bad := range []window.Piece{
				{Target: w.Size(), Section: ok.Section}, {Disp: n * w.Size(), Section: ok.Section}, {Near: room, Section: ok.Section}, {Near: -1},
			} {
				require.Error(t, win.PutSections([]int32{-1}, []window.Piece{ok, bad}))
				require.Error(t, win.GetSections(make([]int32, room), []window.Piece{ok, bad}))
			}
		}
		for m := range want {
			got := make([]int32, n)
			if err := win.Get(m, base, got); err != nil {
				return err
			}
			require.Equal(t, want[m], got)
		}
		require.NoError(t, errors.Join(win.PutSections(nil, nil), win.GetSections(nil, nil)))
		return win.Free(ctx)
	})
}

// TestShortRowsArePacked: short rows that are dense at the target are one operation of the NIC, and get where they belong, beside others and more than are packed at once.
func TestShortRowsArePacked(t *testing.T) {
	const n = 300_000
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int32](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			src, dst := make([]int32, n), make([]int32, n)
			for i := range src {
				src[i] = int32(i + 1)
			}
			dealt := func(rows, cols int) window.Section {
				return window.Section{Rows: rows, Cols: cols, Stride: cols, Step: 1, NearStride: 2 * cols, NearStep: 1}
			}
			for _, c := range []struct {
				most   int // operations of a put, and of a get
				pieces []window.Piece
			}{
				{30, []window.Piece{{Target: 1, Section: dealt(30_000, 1)}, {Target: 1, Disp: 30_000, Near: 1, Section: dealt(30_000, 1)}}},
				{30, []window.Piece{{Target: 1, Section: dealt(5_000, 12)}, {Target: 1, Disp: 70_000, Near: 12, Section: dealt(1, 12)}, {Target: 1, Disp: 80_000, Near: 36, Section: dealt(8, 12)}}},
				{30, slices.Collect(func(yield func(window.Piece) bool) {
					for i := range 20 {
						yield(window.Piece{Target: 1, Disp: 100 * i, Near: 200 * i, Section: dealt(100, 1)})
					}
				})},
				{n, []window.Piece{{Target: 1, Section: dealt(n/16, 8)}, {Target: 1, Disp: n / 2, Near: 8, Section: dealt(n/16, 8)}}},
			} {
				before := loopback(w)
				if err := errors.Join(win.PutSections(src, c.pieces), win.Flush(1)); err != nil {
					return err
				}
				require.LessOrEqual(t, loopback(w)-before, uint64(c.most))
				part := make([]int32, n)
				if err := errors.Join(win.Get(1, 0, part), win.Put(1, 0, make([]int32, n)), win.Flush(1)); err != nil {
					return err
				}
				before = loopback(w)
				hs, err := win.PutSectionsNB(src, c.pieces)
				if err := errors.Join(err, hs.Wait(ctx), win.Flush(1)); err != nil {
					return err
				}
				require.LessOrEqual(t, loopback(w)-before, uint64(c.most))
				again := make([]int32, n)
				if err := win.Get(1, 0, again); err != nil {
					return err
				}
				for i, v := range again { // where no piece lies there are zeros now
					if v != 0 && v != part[i] {
						require.Equal(t, part[i], v, "element %d", i)
					}
				}
				part = again
				clear(dst)
				before = loopback(w)
				if err := win.GetSections(dst, c.pieces); err != nil {
					return err
				}
				require.LessOrEqual(t, loopback(w)-before, uint64(c.most))
				for _, p := range c.pieces {
					for row := range p.Rows {
						for col := range p.Cols {
							near, far := p.Near+row*p.NearStride+col, p.Disp+row*p.Stride+col
							if part[far] != src[near] || dst[near] != src[near] {
								require.Equal(t, [2]int32{src[near], src[near]}, [2]int32{part[far], dst[near]}, "row %d, column %d of %+v", row, col, p)
							}
						}
					}
				}
			}
		}
		return win.Free(ctx)
	})
}

// loopback is how many operations of this rank have gone over the loop-back NIC.
func loopback(w *pgas.World) (n uint64) {
	for _, path := range w.Stats()["loopback"] {
		n += path.Ops
	}
	return n
}
