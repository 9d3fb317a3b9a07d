package verbs_test

import (
	"context"
	"runtime"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/verbs"
	"gopgas/window"
)

// BenchmarkBrief is one short operation of a window between two ranks of this process, the same by the domain's Post and Poll, and by the flat
// functions alone: what TestPaired compares, and in between, for who counts instructions (tools/instructions.sh).
func BenchmarkBrief(b *testing.B) {
	if _, err := verbs.Find(""); err != nil {
		b.Skip(err)
	}
	for _, r := range rows[:3] {
		b.Run(r.name+"/ours", func(b *testing.B) {
			pgastest.RunConfig(b, 2, pgastest.Config{NIC: true, Over: "verbs"}, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[uint64](ctx, w.Team(), 64)
				if err != nil {
					return err
				}
				if w.Rank() == 0 {
					buf := make([]uint64, r.bytes/8)
					if err := each(b, func() error { return r.ours(win, buf) }); err != nil {
						return err
					}
				}
				return win.Free(ctx)
			})
		})
		b.Run(r.name+"/domain", func(b *testing.B) {
			flat := verbs.NewFlat(b, 64)
			if err := each(b, func() error { return flat.Through(r.kind, r.bytes) }); err != nil {
				b.Fatal(err)
			}
		})
		b.Run(r.name+"/flat", func(b *testing.B) {
			flat := verbs.NewFlat(b, 64)
			if err := each(b, func() error { return flat.Do(r.kind, r.bytes) }); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// each says, too, how often an operation calls into C; what this process does beside is counted with it.
func each(b *testing.B, do func() error) error {
	for range 40 {
		if err := do(); err != nil {
			return err
		}
	}
	b.ReportAllocs()
	before := runtime.NumCgoCall()
	for b.Loop() {
		if err := do(); err != nil {
			return err
		}
	}
	b.ReportMetric(float64(runtime.NumCgoCall()-before)/float64(b.N), "crossings/op")
	return nil
}
