package window_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// triple is an element whose size is no power of two.
type triple [3]byte

// TestLongCopies moves so much to and from mapped memory that it is copied in other ways than short pieces are, by every call
// that copies, and looks at what lies around it.
func TestLongCopies(t *testing.T) {
	const most = 200_000
	pgastest.Run(t, 2, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[triple](ctx, w.Team(), 2*most)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			for _, n := range []int{2, 170, 171, 172, 1000, 2731, 30_000, most} {
				if err := longCopies(win, n); err != nil {
					return fmt.Errorf("%d elements: %w", n, err)
				}
			}
		}
		return win.Fence(ctx)
	})
}

func longCopies(win *window.Window[triple], n int) error {
	const at, marker = 7, 255
	src, dst, all := make([]triple, n), make([]triple, n), make([]triple, n+2*at)
	for i := range src {
		src[i] = triple{byte(i % 251), byte(i / 251 % 251), 3}
	}
	rows := window.Packed(2, n/2, n/2)
	half := []int{at, at + n/2}
	for name, pair := range map[string][2]func() error{
		"Put and Get": {func() error { return win.Put(1, at, src) }, func() error { return win.Get(1, at, dst) }},
		"PutNB and GetNB": {
			func() error { _, err := win.PutNB(1, at, src); return err },
			func() error { _, err := win.GetNB(1, at, dst); return err },
		},
		"PutIndexed and GetIndexed": {
			func() error { return win.PutIndexed(1, half, src[:n/2*2]) },
			func() error { return win.GetIndexed(1, half, dst[:n/2*2]) },
		},
		"PutSection and GetSection": {
			func() error { return win.PutSection(1, at, src, rows) },
			func() error { return win.GetSection(1, at, dst, rows) },
		},
	} {
		for i := range all {
			all[i] = triple{marker, marker, marker}
		}
		if err := win.Put(1, 0, all); err != nil {
			return err
		}
		clear(dst)
		if err := pair[0](); err != nil {
			return err
		}
		if err := pair[1](); err != nil {
			return err
		}
		if err := win.Get(1, 0, all); err != nil {
			return err
		}
		even := n / 2 * 2 // an odd one is left out by some
		around := slices.ContainsFunc(append(all[:at:at], all[at+n:]...), func(e triple) bool { return e != triple{marker, marker, marker} })
		if !slices.Equal(dst[:even], src[:even]) || !slices.Equal(all[at:at+even], src[:even]) || around {
			return fmt.Errorf("%s: other elements arrived, or more", name)
		}
	}
	return nil
}

// TestPutFromTheSamePart is a rank's put of a piece of its own part to a place that overlaps it: it acts as if the source had been
// copied before.
func TestPutFromTheSamePart(t *testing.T) {
	const all = 100_000
	pgastest.Run(t, 1, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[uint16](ctx, w.Team(), all)
		if err != nil {
			return err
		}
		for _, n := range []int{3, 300, 3000, all / 2} {
			for _, by := range []int{-n + 1, -1, 1, 40, n - 1, n} {
				at := all/2 - n/2
				if at+by < 0 || at+by+n > all {
					continue
				}
				for i := range win.Local() {
					win.Local()[i] = uint16(i * 7)
				}
				want := slices.Clone(win.Local())
				copy(want[at+by:], want[at:at+n])
				if err := win.Put(0, at+by, win.Local()[at:at+n]); err != nil {
					return err
				}
				if !slices.Equal(win.Local(), want) {
					return fmt.Errorf("%d elements by %d: they arrived otherwise", n, by)
				}
			}
		}
		return nil
	})
}
