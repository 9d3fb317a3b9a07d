package pgas_test

import (
	"context"
	"errors"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// dealtWords is how many words BenchmarkDealt moves.
const dealtWords = 1 << 16

// dealtCalls are calls that move all of an array: those of one member, and the copies from arrays of each layout, of all.
func dealtCalls(ctx context.Context, w *pgas.World, l pgas.Layout) (map[string]func() error, error) {
	a, err := pgas.NewArray[int64](ctx, w.Team(), dealtWords, l)
	if err != nil {
		return nil, err
	}
	buf := make([]int64, dealtWords)
	alone := map[string]func() error{
		"Get":        func() error { return a.Get(0, buf) },
		"Put":        func() error { return errors.Join(a.Put(0, buf), a.Flush()) },
		"Accumulate": func() error { return errors.Join(pgas.Accumulate(a, 0, buf, pgsync.Sum), a.Flush()) },
		"All": func() (err error) {
			for _, err = range a.All(ctx, 0, dealtWords) {
				if err != nil {
					break
				}
			}
			return err
		},
	}
	calls := map[string]func() error{}
	for name, call := range alone {
		calls[name] = func() error {
			if w.Rank() > 0 {
				return nil
			}
			return call()
		}
	}
	for _, from := range dealtLayouts {
		x, err := pgas.NewArray[int64](ctx, w.Team(), dealtWords, from)
		if err != nil {
			return nil, err
		}
		calls["CopyFrom "+from.String()] = func() error { return a.CopyFrom(ctx, x) }
	}
	return calls, nil
}

// BenchmarkDealt moves arrays of two members from layout to layout, and to and from one of them.
func BenchmarkDealt(b *testing.B) {
	paths := map[string]pgastest.Config{"mapped": {}, "soft": {NIC: true, Over: "soft"}, "tcp": {NIC: true, Over: "tcp"}}
	names := []string{"Get", "Put", "Accumulate", "All"}
	for _, l := range dealtLayouts {
		names = append(names, "CopyFrom "+l.String())
	}
	for path, c := range paths {
		for _, l := range dealtLayouts {
			for _, name := range names {
				b.Run(path+"/"+l.String()+"/"+name, func(b *testing.B) {
					pgastest.RunConfig(b, 2, c, func(ctx context.Context, w *pgas.World) error {
						calls, err := dealtCalls(ctx, w, l)
						if err != nil {
							return err
						}
						if w.Rank() == 0 {
							b.ResetTimer()
						}
						for range b.N {
							if err := calls[name](); err != nil {
								return err
							}
						}
						if w.Rank() == 0 {
							b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/dealtWords, "ns/element")
						}
						return w.Barrier(ctx)
					})
				})
			}
		}
	}
}
