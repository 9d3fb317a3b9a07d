package main

import (
	"context"
	"fmt"
	"slices"

	"gopgas/window"
)

// The words that the 8-byte rows touch: one in a place of its own, and a table of 4096 that lie a cache line apart.
const (
	tableWords = 4096
	lineWords  = 8
	hotWord    = tableWords * lineWords
	wordCount  = hotWord + lineWords
	flushEvery = 64
)

// words is the memory of the 8-byte rows, and what their loops need at hand.
type words struct {
	peer int
	win  *window.Window[uint64]
	view window.View[uint64]
	atom window.Atomic[uint64]
	disp *[tableWords]int // the table of displacements
	src  []uint64         // sources of non-blocking puts
}

// wordLoop does n operations, the first of them being operation base of the row, and flushes. sum is over the values
// that were fetched.
type wordLoop func(e *words, base uint64, n int) (sum uint64, err error)

// wordCheck is what must hold after a loop.
type wordCheck struct {
	begin  func(local []uint64)                           // at the target, before the first loop; nil: zeros
	sum    func(base, n uint64) uint64                    // at the origin; nil: nothing was fetched
	target func(local []uint64, base, n uint64) (bad int) // at the target: the first wrong word, or -1
}

// wordRow is a row of one operation on 8 bytes.
func wordRow(name, title, api, unit string, mapped bool, step int, loop wordLoop, check wordCheck) row {
	return row{
		name: name, title: title, api: api, unit: unit, mapped: mapped,
		measure: func(ctx context.Context, b *bench, r *row) (int, []float64, error) {
			e, err := b.newWords(ctx)
			if err != nil {
				return 0, nil, err
			}
			n, values, err := b.words(ctx, r, e, step, loop, check)
			if err != nil {
				return 0, nil, err
			}
			return n, values, e.win.Free(ctx)
		},
	}
}

func (b *bench) newWords(ctx context.Context) (*words, error) {
	win, err := window.Allocate[uint64](ctx, b.w.Team(), wordCount)
	if err != nil {
		return nil, err
	}
	e := &words{peer: b.peer, win: win, disp: new([tableWords]int), src: make([]uint64, flushEvery)}
	for i := range e.disp {
		e.disp[i] = i * lineWords
	}
	e.view, _ = win.View(b.peer) // rows that need it are not measured where it is not there
	e.atom = window.Atomics(e.view)
	clear(win.Local()) // touches every page
	return e, nil
}

// words measures a loop and checks its last run.
func (b *bench) words(ctx context.Context, r *row, e *words, step int, loop wordLoop, check wordCheck) (int, []float64, error) {
	local := e.win.Local()
	if check.begin != nil && b.w.Rank() == b.peer {
		check.begin(local)
	}
	if err := e.win.Fence(ctx); err != nil {
		return 0, nil, err
	}
	var base, last uint64
	n, values, err := b.alone(ctx, r, step, 8, func(n int) error {
		sum, err := loop(e, base, n)
		if err == nil && check.sum != nil && sum != check.sum(base, uint64(n)) {
			err = fmt.Errorf("wrong result at the origin: the fetched values add up to %d, want %d", sum, check.sum(base, uint64(n)))
		}
		base, last = base+uint64(n), base
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	told, err := b.tell(ctx, last, uint64(n))
	if err != nil {
		return 0, nil, err
	}
	var wrong error
	if b.w.Rank() == b.peer && check.target != nil {
		if i := check.target(local, told[0], told[1]); i >= 0 {
			wrong = fmt.Errorf("wrong result at the target: word %d is %d after operations %d to %d", i, local[i], told[0], told[0]+told[1]-1)
		}
	}
	return n, values, b.agree(ctx, wrong)
}

// lastOf returns the last of n operations that touched table entry j.
func lastOf(j int, n uint64) uint64 { return uint64(j) + (n-1-uint64(j))/tableWords*tableWords }

// checkHot wants the hot word to count the operations.
var checkHot = wordCheck{target: func(local []uint64, base, n uint64) int {
	if local[hotWord] != base+n {
		return hotWord
	}
	return -1
}}

// checkCount wants, in addition, the old values that a fetching atomic saw: base, base+1, …
var checkCount = wordCheck{
	sum:    func(base, n uint64) uint64 { return n*base + n*(n-1)/2 },
	target: checkHot.target,
}

// checkTable wants in every table entry what want says of the last operation on it.
func checkTable(want func(base, op uint64) uint64) wordCheck { return checkEvery(lineWords, want) }

// checkEvery is checkTable for a table whose entries lie so many words apart.
func checkEvery(words int, want func(base, op uint64) uint64) wordCheck {
	return wordCheck{target: func(local []uint64, base, n uint64) int {
		for j := range int(min(n, tableWords)) {
			if local[j*words] != want(base, lastOf(j, n)) {
				return j * words
			}
		}
		return -1
	}}
}

// sideBySide is a loop over a table whose entries have no room between them.
func sideBySide(loop wordLoop) wordLoop {
	near := new([tableWords]int)
	for i := range near {
		near[i] = i
	}
	return func(e *words, base uint64, n int) (uint64, error) {
		f := *e
		f.disp = near
		return loop(&f, base, n)
	}
}

// checkGet fills the table with 1, 2, … and wants their sum.
var checkGet = wordCheck{
	begin: func(local []uint64) {
		for j := range tableWords {
			local[j*lineWords] = uint64(j + 1)
		}
	},
	sum: func(_, n uint64) uint64 {
		rest := n % tableWords
		return n/tableWords*(tableWords*(tableWords+1)/2) + rest*(rest+1)/2
	},
}

func wordRows() []row {
	const (
		same  = "8 B put + flush, same word"
		table = "8 B put + flush, 4096 words"
		get   = "8 B get"
		batch = "8 B puts, flush every 64"
		near  = "8 B puts side by side, flush every 64"
	)
	each := checkTable(func(base, op uint64) uint64 { return base + op + 1 })
	batched := func(base, op uint64) uint64 { return base + op%flushEvery + 1 }
	inBatch, nearby := checkTable(batched), checkEvery(1, batched)
	rows := []row{
		wordRow("put8_same", same, "View.Store + View.Order", unitNanos, true, 100, viewOrderSame, checkHot),
		wordRow("put8_same", same, "View.Store + View.Flush", unitNanos, true, 100, viewFlushSame, checkHot),
		wordRow("put8_same", same, "Atomic.Store", unitNanos, true, 100, atomicStoreSame, checkHot),
		wordRow("put8_same", same, "Window.Put + Flush", unitNanos, false, 100, putFlushSame, checkHot),
		wordRow("put8_table", table, "View.Store + View.Order", unitNanos, true, 100, viewOrderTable, each),
		wordRow("put8_table", table, "View.Store + View.Flush", unitNanos, true, 100, viewFlushTable, each),
		wordRow("put8_table", table, "Window.Put + Order", unitNanos, false, 100, putOrderTable, each),
		wordRow("put8_table", table, "Window.Put + Flush", unitNanos, false, 100, putFlushTable, each),
		wordRow("get8", get, "View.Load", unitNanos, true, 100, viewLoad, checkGet),
		wordRow("get8", get, "Window.Get", unitNanos, false, 100, windowGet, checkGet),
		wordRow("fetch_add", "64-bit fetch-add", "Atomic.FetchAdd", unitNanos, true, 100, atomicFetchAdd, checkCount),
		wordRow("fetch_add", "64-bit fetch-add", "window.FetchAdd", unitNanos, false, 100, windowFetchAdd, checkCount),
		wordRow("compare_swap", "64-bit compare-swap", "Atomic.CompareSwap", unitNanos, true, 100, atomicCompareSwap, checkHot),
		wordRow("compare_swap", "64-bit compare-swap", "window.CompareSwap", unitNanos, false, 100, windowCompareSwap, checkCount),
	}
	const fetches = "64-bit fetch-adds, 64 at a time"
	for _, unit := range []string{unitNanos, unitMillion} {
		name := map[string]string{unitNanos: "fetch_add_batch", unitMillion: "fetch_add_rate"}[unit]
		rows = append(rows,
			wordRow(name, fetches, "window.FetchAdd", unit, false, flushEvery, windowFetchAdd, checkCount),
			wordRow(name, fetches, "window.FetchAddNB, FlushLocal per 64", unit, false, flushEvery, fetchAddNB, checkCount),
			wordRow(name, fetches, "window.GatherAccumulate", unit, false, flushEvery, gatherAccumulate, checkCount))
	}
	for _, unit := range []string{unitNanos, unitMillion} {
		name := map[string]string{unitNanos: "put8_batch", unitMillion: "put8_rate"}[unit]
		rows = append(rows,
			wordRow(name, batch, "View.Store, View.Flush per 64", unit, true, flushEvery, viewBatch, inBatch),
			wordRow(name, batch, "Window.Put, Flush per 64", unit, false, flushEvery, putBatch, inBatch),
			wordRow(name, batch, "Window.PutNB, Flush per 64", unit, false, flushEvery, putNBBatch, inBatch))
	}
	rows = append(rows,
		wordRow("put8_near", near, "Window.Put, Flush per 64", unitNanos, false, flushEvery, sideBySide(putBatch), nearby),
		wordRow("put8_near", near, "Window.PutNB, Flush per 64", unitNanos, false, flushEvery, sideBySide(putNBBatch), nearby))
	return slices.Clip(rows)
}
