package main

import (
	"errors"
	"fmt"
	"sync"
)

// goroutines is how many of the origin make the operations of the rows by many.
const goroutines = 16

// share is how many of n operations goroutine g makes.
func share(g, n int) int {
	m := n / goroutines
	if g < n%goroutines {
		m++
	}
	return m
}

// byMany is a loop whose operations goroutines make at the same time, each a share of its own.
func byMany(one func(e *words, g int, base uint64, n int) (sum uint64, err error)) wordLoop {
	return func(e *words, base uint64, n int) (uint64, error) {
		var all sync.WaitGroup
		var sums [goroutines]uint64
		var errs [goroutines]error
		for g := range goroutines {
			all.Go(func() { sums[g], errs[g] = one(e, g, base, share(g, n)) })
		}
		all.Wait()
		var sum uint64
		for _, s := range sums {
			sum += s
		}
		return sum, errors.Join(errs[:]...)
	}
}

// entriesEach is how many entries of the table each goroutine has for its puts.
const entriesEach = tableWords / goroutines

func putByOne(e *words, g int, base uint64, n int) (uint64, error) {
	src := make([]uint64, 1)
	for i := range n {
		src[0] = base + uint64(i) + 1
		if err := e.win.Put(e.peer, e.disp[g*entriesEach+i%entriesEach], src); err != nil {
			return 0, err
		}
		if err := e.win.Flush(e.peer); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// checkPutByMany wants what each goroutine has put last into each of its entries.
var checkPutByMany = wordCheck{target: func(local []uint64, base, n uint64) int {
	for j := range tableWords {
		made, k := share(j/entriesEach, int(n)), j%entriesEach
		if made <= k {
			continue
		}
		if last := k + (made-1-k)/entriesEach*entriesEach; local[j*lineWords] != base+uint64(last)+1 {
			return j * lineWords
		}
	}
	return -1
}}

// checkGetByMany fills the table as checkGet does; each goroutine begins with its first entry.
var checkGetByMany = wordCheck{
	begin: checkGet.begin,
	sum: func(base, n uint64) (sum uint64) {
		for g := range goroutines {
			sum += checkGet.sum(base, uint64(share(g, int(n))))
		}
		return sum
	},
}

func manyRows() []row {
	by := fmt.Sprintf(" by %d goroutines", goroutines)
	return []row{
		wordRow("put8_many", "8 B put + flush"+by, "Window.Put + Flush", unitNanos, false, 1000, byMany(putByOne), checkPutByMany),
		wordRow("get8_many", "8 B get"+by, "Window.Get", unitNanos, false, 1000, byMany(func(e *words, _ int, base uint64, n int) (uint64, error) {
			return windowGet(e, base, n)
		}), checkGetByMany),
		wordRow("fetch_add_many", "64-bit fetch-add"+by, "window.FetchAdd", unitNanos, false, 1000, byMany(func(e *words, _ int, base uint64, n int) (uint64, error) {
			return windowFetchAdd(e, base, n)
		}), checkCount),
	}
}
