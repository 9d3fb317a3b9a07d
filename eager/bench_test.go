package eager

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// fill adds n buffers, all frequent, so that the table goes on growing.
func fill(n int) (*Table, []uint64) {
	table, addrs := NewTable(), make([]uint64, n)
	for i := range addrs {
		addrs[i] = 0xc000000000 + uint64(i)*4096
		table.Use(addrs[i], 1)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	return table, addrs
}

// BenchmarkUse is the update of the usage table: buffers in random order, all of them known.
func BenchmarkUse(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			table, addrs := fill(n)
			b.ReportAllocs()
			i := rand.IntN(n) // so that short runs do not meet the same ones again
			for b.Loop() {
				table.Use(addrs[i], never)
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

// BenchmarkLine is what BenchmarkUse cannot go below on a machine: the same words of the same table in the same order are counted up, with
// no question asked. Each is known before the one before it is there, or only then.
func BenchmarkLine(b *testing.B) {
	table, addrs := fill(1_000_000)
	for _, name := range []string{"known", "told by the one before"} {
		b.Run(name, func(b *testing.B) {
			told, i := uint64(0), 0
			for b.Loop() {
				w := &table.words[bucket(addrs[i], table.bits)^told]
				*w++
				if name != "known" {
					told = *w >> 63 // 0, which the processor does not know
				}
				if i++; i == len(addrs) {
					i = 0
				}
			}
		})
	}
}

// BenchmarkUsedOnce is the update of a table that has stopped growing: buffers by chance, none of which it knows.
func BenchmarkUsedOnce(b *testing.B) {
	const n = 1_000_000
	table, addrs := NewTable(), make([]uint64, n)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range addrs {
		addrs[i] = rng.Uint64()>>17 | 1
		table.Use(addrs[i], never)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		table.Use(addrs[i], never)
		if i++; i == n {
			i = 0
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	l, cost := Limits{Inline: 128, Slot: 8192}, Cost{Copy: 1100, Lookup: 100, Wire: 3000}
	q := Query{Bytes: 4096, Frequent: true, Waited: true}
	b.ReportAllocs()
	var c Choice
	for b.Loop() {
		c += Decide(Auto, q, l, cost)
	}
	_ = c
}

func BenchmarkPut(b *testing.B) {
	e := newChooser(b, Config{})
	b.ReportAllocs()
	for b.Loop() {
		e.Put(0xc000000000, 4096, 7, true, false)
	}
}
