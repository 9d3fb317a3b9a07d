package pgas_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// pair is an array and an ordinary slice that is to be the same. All ranks draw the same numbers and change their slices alike; what is not
// collective one of them does to the array.
type pair struct {
	ctx  context.Context
	t    *testing.T
	w    *pgas.World
	a    *pgas.Array[int32]
	s    []int32
	r    *rand.Rand
	acts bool
}

// stretch is some part of the slice.
func (p *pair) stretch() (lo, n int) {
	lo = p.r.IntN(len(p.s) + 1)
	return lo, p.r.IntN(len(p.s) - lo + 1)
}

// values are n random ones.
func (p *pair) values(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = p.r.Int32N(1000) - 500
	}
	return out
}

// some are different indices.
func (p *pair) some() []int { return p.r.Perm(len(p.s))[:p.r.IntN(len(p.s)+1)] }

// op is a reduction's operation.
func (p *pair) op() pgsync.Op { return pgsync.Op(p.r.IntN(int(pgsync.Replace))) }

// same wants what the array has given to be what the slice has.
func (p *pair) same(what string, want, have any, err error) error {
	if err == nil {
		require.Equal(p.t, want, have, "%s, array of %d, %v", what, len(p.s), p.a)
	}
	return err
}

func apply(op pgsync.Op, x, y int32) int32 {
	switch op {
	case pgsync.Sum:
		return x + y
	case pgsync.Prod:
		return x * y
	case pgsync.Min:
		return min(x, y)
	case pgsync.Max:
		return max(x, y)
	case pgsync.And:
		return x & y
	case pgsync.Or:
		return x | y
	case pgsync.Xor:
		return x ^ y
	}
	return y
}

// other is an array in another layout, and a slice like it.
func (p *pair) other() (*pgas.Array[int32], []int32, error) {
	ls := layouts(len(p.s), p.w.Size())
	b, err := pgas.NewArray[int32](p.ctx, p.w.Team(), len(p.s), ls[p.r.IntN(len(ls))])
	if err != nil {
		return nil, nil, err
	}
	with := p.values(len(p.s))
	return b, with, b.Apply(p.ctx, func(i int, _ int32) int32 { return with[i] })
}

// fetched is an atomic that returns what the element was.
func (p *pair) fetched(what string, f func(a *pgas.Array[int32], i int, v int32) (int32, error), g func(x, v int32) int32) error {
	if len(p.s) == 0 {
		return nil
	}
	i, v := p.r.IntN(len(p.s)), p.values(1)[0]
	was := p.s[i]
	p.s[i] = g(was, v)
	if !p.acts {
		return nil
	}
	have, err := f(p.a, i, v)
	return p.same(what, was, have, err)
}

// arrayCalls are the calls that every array has, by name, each beside the same on the slice. Package test/docs sees to it that none is missing; Owner
// stands for Index, Range, Local and Mine too.
var arrayCalls = map[string]func(p *pair) error{
	"Len": func(p *pair) error { return p.same("Len", len(p.s), p.a.Len(), nil) },
	"At": func(p *pair) error {
		if len(p.s) == 0 {
			return nil
		}
		i := p.r.IntN(len(p.s))
		have, err := p.a.At(i)
		return p.same("At", p.s[i], have, err)
	},
	"Set": func(p *pair) error {
		if len(p.s) == 0 {
			return nil
		}
		i, v := p.r.IntN(len(p.s)), p.values(1)[0]
		p.s[i] = v
		if !p.acts {
			return nil
		}
		return p.a.Set(i, v)
	},
	"Get": func(p *pair) error {
		lo, n := p.stretch()
		dst := make([]int32, n)
		err := p.a.Get(lo, dst)
		return p.same("Get", p.s[lo:lo+n], dst, err)
	},
	"Put": func(p *pair) error {
		lo, n := p.stretch()
		src := p.values(n)
		copy(p.s[lo:], src)
		if !p.acts {
			return nil
		}
		return p.a.Put(lo, src)
	},
	"GetNB": func(p *pair) error {
		lo, n := p.stretch()
		dst := make([]int32, n)
		hs, err := p.a.GetNB(lo, dst)
		if err == nil {
			err = hs.Wait(p.ctx)
		}
		return p.same("GetNB", p.s[lo:lo+n], dst, err)
	},
	"PutNB": func(p *pair) error {
		lo, n := p.stretch()
		src := p.values(n)
		copy(p.s[lo:], src)
		if !p.acts {
			return nil
		}
		hs, err := p.a.PutNB(lo, src)
		if err == nil {
			err = hs.Wait(p.ctx)
		}
		return err
	},
	"GetStrided": func(p *pair) error {
		at, lo, step := p.steps()
		dst, want := make([]int32, len(at)), make([]int32, len(at))
		for k, i := range at {
			want[k] = p.s[i]
		}
		err := p.a.GetStrided(lo, step, dst)
		return p.same("GetStrided", want, dst, err)
	},
	"PutStrided": func(p *pair) error {
		at, lo, step := p.steps()
		src := p.values(len(at))
		for k, i := range at {
			p.s[i] = src[k]
		}
		if !p.acts {
			return nil
		}
		return p.a.PutStrided(lo, step, src)
	},
	"Gather": func(p *pair) error {
		at := append(p.some(), p.some()...)
		dst, want := make([]int32, len(at)), make([]int32, len(at))
		for k, i := range at {
			want[k] = p.s[i]
		}
		err := p.a.Gather(dst, at)
		return p.same("Gather", want, dst, err)
	},
	"Scatter": func(p *pair) error {
		at := p.some()
		src := p.values(len(at))
		for k, i := range at {
			p.s[i] = src[k]
		}
		if !p.acts {
			return nil
		}
		return p.a.Scatter(src, at)
	},
	"All": func(p *pair) error {
		lo, n := p.stretch()
		have := []int32{}
		for v, err := range p.a.All(p.ctx, lo, lo+n) {
			if err != nil {
				return err
			}
			have = append(have, v)
		}
		return p.same("All", p.s[lo:lo+n:lo+n], have, nil)
	},
	"Accumulate": func(p *pair) error {
		lo, n := p.stretch()
		src, op := p.values(n), pgsync.Op(p.r.IntN(int(pgsync.Replace)+1))
		for k, v := range src {
			p.s[lo+k] = apply(op, p.s[lo+k], v)
		}
		if !p.acts {
			return nil
		}
		return pgas.Accumulate(p.a, lo, src, op)
	},
	"ScatterAccumulate": func(p *pair) error {
		at, op := append(p.some(), p.some()...), p.op() // some twice: these operations commute
		src := p.values(len(at))
		for k, i := range at {
			p.s[i] = apply(op, p.s[i], src[k])
		}
		if !p.acts {
			return nil
		}
		return pgas.ScatterAccumulate(p.a, at, src, op)
	},
	"GatherAccumulate": func(p *pair) error {
		at, op := p.some(), pgsync.Op(p.r.IntN(int(pgsync.Replace)+1))
		src, old, want := p.values(len(at)), make([]int32, len(at)), make([]int32, len(at))
		for k, i := range at {
			want[k] = p.s[i]
			p.s[i] = apply(op, p.s[i], src[k])
		}
		if !p.acts {
			return nil
		}
		err := pgas.GatherAccumulate(p.a, at, src, old, op)
		return p.same("GatherAccumulate", want, old, err)
	},
	"FetchAdd": func(p *pair) error {
		return p.fetched("FetchAdd", pgas.FetchAdd, func(x, v int32) int32 { return x + v })
	},
	"FetchAddNB": func(p *pair) error {
		return p.fetched("FetchAddNB", func(a *pgas.Array[int32], i int, v int32) (int32, error) {
			old := make([]int32, 1)
			h, err := pgas.FetchAddNB(a, i, v, &old[0])
			if err == nil {
				err = h.Wait(p.ctx)
			}
			return old[0], err
		}, func(x, v int32) int32 { return x + v })
	},
	"FetchXor": func(p *pair) error {
		return p.fetched("FetchXor", pgas.FetchXor, func(x, v int32) int32 { return x ^ v })
	},
	"Load": func(p *pair) error {
		if len(p.s) == 0 {
			return nil
		}
		i := p.r.IntN(len(p.s))
		if !p.acts {
			return nil
		}
		have, err := pgas.Load(p.a, i)
		return p.same("Load", p.s[i], have, err)
	},
	"Store": func(p *pair) error {
		if len(p.s) == 0 {
			return nil
		}
		i, v := p.r.IntN(len(p.s)), p.values(1)[0]
		p.s[i] = v
		if !p.acts {
			return nil
		}
		return pgas.Store(p.a, i, v)
	},
	"SwapNB": func(p *pair) error {
		return p.fetched("SwapNB", func(a *pgas.Array[int32], i int, v int32) (int32, error) {
			old := make([]int32, 1)
			h, err := pgas.SwapNB(a, i, v, &old[0])
			err = errors.Join(err, h.Wait(p.ctx))
			return old[0], err
		}, func(_, v int32) int32 { return v })
	},
	"Swap": func(p *pair) error { return p.fetched("Swap", pgas.Swap, func(_, v int32) int32 { return v }) },
	"CompareSwapNB": func(p *pair) error {
		old := p.values(1)[0]
		if p.r.IntN(2) == 0 && len(p.s) > 0 {
			old = p.s[p.r.IntN(len(p.s))]
		}
		return p.fetched("CompareSwapNB", func(a *pgas.Array[int32], i int, v int32) (int32, error) {
			was := make([]int32, 1)
			h, err := pgas.CompareSwapNB(a, i, old, v, &was[0])
			err = errors.Join(err, h.Wait(p.ctx))
			return was[0], err
		}, func(x, v int32) int32 {
			if x == old {
				return v
			}
			return x
		})
	},
	"CompareSwap": func(p *pair) error {
		old := p.values(1)[0]
		if p.r.IntN(2) == 0 && len(p.s) > 0 { // most likely another element's
			old = p.s[p.r.IntN(len(p.s))]
		}
		f := func(a *pgas.Array[int32], i int, v int32) (int32, error) { return pgas.CompareSwap(a, i, old, v) }
		return p.fetched("CompareSwap", f, func(x, v int32) int32 {
			if x == old {
				return v
			}
			return x
		})
	},
	"Ptr": func(p *pair) error {
		if len(p.s) == 0 {
			return nil
		}
		i, v := p.r.IntN(len(p.s)), p.values(1)[0]
		was := p.s[i]
		p.s[i] = v
		if !p.acts {
			return nil
		}
		have, err := p.a.Ptr(i).Load()
		return errors.Join(p.same("Ptr", was, have, err), p.a.Ptr(i).Store(v))
	},
	"Flush": func(p *pair) error { // without a Fence the one who puts sees it
		lo, n := p.stretch()
		src, dst := p.values(n), make([]int32, n)
		copy(p.s[lo:], src)
		if !p.acts {
			return nil
		}
		err := errors.Join(p.a.Put(lo, src), p.a.Flush(), p.a.Get(lo, dst))
		return p.same("Flush", src, dst, err)
	},
	"Owner": func(p *pair) error { // who owns what, and where it lies
		have, local := make([]bool, len(p.s)), p.a.Local()
		for i, x := range p.a.Mine() {
			member, disp := p.a.Owner(i)
			require.Equal(p.t, p.w.Rank(), member)
			require.Equal(p.t, i, p.a.Index(member, disp))
			require.Equal(p.t, []int32{p.s[i], p.s[i]}, []int32{*x, local[disp]}, "element %d of %v", i, p.a)
			lo, hi := p.a.Range(member)
			require.True(p.t, lo <= i && i < hi)
			have[i] = true
		}
		for i := range p.s {
			member, _ := p.a.Owner(i)
			require.Equal(p.t, member == p.w.Rank(), have[i], "element %d of %v", i, p.a)
		}
		return nil
	},
	"Owned": func(p *pair) error { // this rank's elements, in order
		var mine, have []int32
		for _, x := range p.a.Mine() {
			mine = append(mine, *x)
		}
		for some := range p.a.Owned() {
			have = append(have, some...)
		}
		return p.same("Owned", have, mine, nil)
	},
	"Fill": func(p *pair) error {
		v := p.values(1)[0]
		for i := range p.s {
			p.s[i] = v
		}
		return p.a.Fill(p.ctx, v)
	},
	"Apply": func(p *pair) error {
		f := func(i int, v int32) int32 { return 3*v - int32(i) }
		for i, v := range p.s {
			p.s[i] = f(i, v)
		}
		return p.a.Apply(p.ctx, f)
	},
	"Combine": func(p *pair) error {
		b, with, err := p.other()
		if err != nil {
			return err
		}
		f := func(x, y int32) int32 { return 2*x - y }
		for i, v := range p.s {
			p.s[i] = f(v, with[i])
		}
		return errors.Join(p.a.Combine(p.ctx, p.a, b, f), b.Free(p.ctx))
	},
	"CopyFrom": func(p *pair) error {
		b, with, err := p.other()
		if err != nil {
			return err
		}
		p.s = with
		return errors.Join(p.a.CopyFrom(p.ctx, b), b.Free(p.ctx))
	},
	"Resize": func(p *pair) error {
		n := p.r.IntN(70)
		ls := layouts(n, p.w.Size())
		p.s = append(p.s, make([]int32, max(0, n-len(p.s)))...)[:n]
		return p.a.Resize(p.ctx, n, ls[p.r.IntN(len(ls))])
	},
	"Scan": func(p *pair) error {
		op := p.op()
		for i := 1; i < len(p.s); i++ {
			p.s[i] = apply(op, p.s[i-1], p.s[i])
		}
		return pgas.Scan(p.ctx, p.a, op)
	},
	"Reduce": func(p *pair) error {
		op := p.op()
		have, err := pgas.Reduce(p.ctx, p.a, op)
		if len(p.s) == 0 {
			require.ErrorIs(p.t, err, pgas.ErrRange)
			return nil
		}
		want := p.s[0]
		for _, v := range p.s[1:] {
			want = apply(op, want, v)
		}
		return p.same("Reduce", want, have, err)
	},
}

// steps are places that a stride reaches, forwards or backwards.
func (p *pair) steps() (at []int, lo, step int) {
	step = p.r.IntN(9) - 4
	if step == 0 || len(p.s) == 0 {
		return nil, 0, 1
	}
	lo = p.r.IntN(len(p.s))
	for i := lo; i >= 0 && i < len(p.s) && p.r.IntN(12) > 0; i += step {
		at = append(at, i)
	}
	return at, lo, step
}

// TestArrayAgainstSlice makes random calls of arrays in all layouts, and the same on a slice.
func TestArrayAgainstSlice(t *testing.T) {
	var names []string
	for name := range arrayCalls {
		names = append(names, name)
	}
	slices.Sort(names)
	calls := 12 * len(names)
	if raceEnabled || testing.Short() {
		calls = 3 * len(names)
	}
	pgastest.Each(t, []int{1, 3, 4}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		p := &pair{ctx: ctx, t: t, w: w, s: make([]int32, 41), r: rand.New(rand.NewPCG(41, uint64(w.Size())))}
		var err error
		if p.a, err = pgas.NewArray[int32](ctx, w.Team(), len(p.s), pgas.BlockCyclic(3)); err != nil {
			return err
		}
		for k := range calls {
			name := names[p.r.IntN(len(names))]
			if k < len(names) {
				name = names[k] // each once at least
			}
			p.acts = p.r.IntN(w.Size()) == w.Rank()
			if err := errors.Join(arrayCalls[name](p), p.a.Fence(ctx)); err != nil {
				return errors.Join(errors.New(name), err)
			}
			if k%9 == 8 {
				if err := holds(ctx, t, p.a, p.s, "after %s, call %d", name, k); err != nil {
					return err
				}
			}
		}
		return errors.Join(holds(ctx, t, p.a, p.s), p.a.Free(ctx))
	})
}
