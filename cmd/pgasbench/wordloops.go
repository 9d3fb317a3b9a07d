package main

import (
	pgsync "gopgas/sync"
	"gopgas/window"
)

// The loops of the 8-byte rows. Each stands alone, so that what inlines in a user's loop inlines here, which is checked where it
// counts; the value stored is the number of the operation, from 1. Remainders are of unsigned numbers, as a compiler of C has them.

func viewOrderSame(e *words, base uint64, n int) (uint64, error) {
	v := e.view
	for i := range n {
		v.Store(hotWord, base+uint64(i)+1)
		v.Order()
	}
	v.Flush()
	return 0, nil
}

func viewFlushSame(e *words, base uint64, n int) (uint64, error) {
	v := e.view
	for i := range n {
		v.Store(hotWord, base+uint64(i)+1)
		v.Flush()
	}
	return 0, nil
}

func atomicStoreSame(e *words, base uint64, n int) (uint64, error) {
	a := e.atom
	for i := range n {
		//gcassert:inline
		a.Store(hotWord, base+uint64(i)+1)
	}
	return 0, nil
}

func putFlushSame(e *words, base uint64, n int) (uint64, error) {
	win, peer, one := e.win, e.peer, make([]uint64, 1)
	for i := range n {
		one[0] = base + uint64(i) + 1
		if err := win.Put(peer, hotWord, one); err != nil {
			return 0, err
		}
		if err := win.Flush(peer); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

func viewOrderTable(e *words, base uint64, n int) (uint64, error) {
	v, disp := e.view, e.disp
	for i := range n {
		//gcassert:inline
		v.Store(disp[uint(i)%tableWords], base+uint64(i)+1)
		v.Order()
	}
	v.Flush()
	return 0, nil
}

func viewFlushTable(e *words, base uint64, n int) (uint64, error) {
	v, disp := e.view, e.disp
	for i := range n {
		//gcassert:inline
		v.Store(disp[uint(i)%tableWords], base+uint64(i)+1)
		v.Flush()
	}
	return 0, nil
}

func putOrderTable(e *words, base uint64, n int) (uint64, error) {
	win, peer, disp, one := e.win, e.peer, e.disp, make([]uint64, 1)
	for i := range n {
		one[0] = base + uint64(i) + 1
		if err := win.Put(peer, disp[uint(i)%tableWords], one); err != nil {
			return 0, err
		}
		if err := win.Order(peer); err != nil {
			return 0, err
		}
	}
	return 0, win.Flush(peer)
}

func putFlushTable(e *words, base uint64, n int) (uint64, error) {
	win, peer, disp, one := e.win, e.peer, e.disp, make([]uint64, 1)
	for i := range n {
		one[0] = base + uint64(i) + 1
		if err := win.Put(peer, disp[uint(i)%tableWords], one); err != nil {
			return 0, err
		}
		if err := win.Flush(peer); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

func viewLoad(e *words, _ uint64, n int) (sum uint64, err error) {
	v := e.view
	for ; n > 0; n -= tableWords {
		for _, d := range e.disp[:min(n, tableWords)] {
			//gcassert:inline
			sum += v.Load(d)
		}
	}
	return sum, nil
}

func windowGet(e *words, _ uint64, n int) (sum uint64, err error) {
	one := make([]uint64, 1)
	for i := range n {
		if err := e.win.Get(e.peer, e.disp[uint(i)%tableWords], one); err != nil {
			return 0, err
		}
		sum += one[0]
	}
	return sum, nil
}

func atomicFetchAdd(e *words, _ uint64, n int) (sum uint64, err error) {
	a := e.atom
	for range n {
		//gcassert:inline
		sum += a.FetchAdd(hotWord, 1)
	}
	return sum, nil
}

func windowFetchAdd(e *words, _ uint64, n int) (sum uint64, err error) {
	for range n {
		old, err := window.FetchAdd(e.win, e.peer, hotWord, 1)
		if err != nil {
			return 0, err
		}
		sum += old
	}
	return sum, nil
}

func atomicCompareSwap(e *words, base uint64, n int) (uint64, error) {
	a := e.atom
	for i := range n {
		//gcassert:inline
		if !a.CompareSwap(hotWord, base+uint64(i), base+uint64(i)+1) {
			return 0, errLost
		}
	}
	return 0, nil
}

func fetchAddNB(e *words, _ uint64, n int) (sum uint64, err error) {
	win, peer, old := e.win, e.peer, e.src
	for range n / flushEvery {
		for i := range flushEvery {
			if _, err := window.FetchAddNB(win, peer, hotWord, 1, &old[i]); err != nil {
				return 0, err
			}
		}
		if err := win.FlushLocal(peer); err != nil {
			return 0, err
		}
		for _, v := range old {
			sum += v
		}
	}
	return sum, nil
}

func gatherAccumulate(e *words, _ uint64, n int) (sum uint64, err error) {
	old, ones := e.src, make([]uint64, flushEvery)
	for i := range ones {
		ones[i] = 1
	}
	place := func(int) (int, int) { return e.peer, hotWord }
	for range n / flushEvery {
		if err := window.GatherAccumulate(e.win, place, ones, old, pgsync.Sum); err != nil {
			return 0, err
		}
		for _, v := range old {
			sum += v
		}
	}
	return sum, nil
}

func windowCompareSwap(e *words, base uint64, n int) (sum uint64, err error) {
	for i := range n {
		old, err := window.CompareSwap(e.win, e.peer, hotWord, base+uint64(i), base+uint64(i)+1)
		if err != nil {
			return 0, err
		}
		sum += old
	}
	return sum, nil
}

// fill numbers the sources of a batch.
func (e *words) fill(base uint64) []uint64 {
	for i := range e.src {
		e.src[i] = base + uint64(i) + 1
	}
	return e.src
}

func viewBatch(e *words, base uint64, n int) (uint64, error) {
	v, disp, src := e.view, e.disp, (*[flushEvery]uint64)(e.fill(base))
	for i := range n {
		//gcassert:inline
		v.Store(disp[uint(i)%tableWords], src[uint(i)%flushEvery])
		if uint(i)%flushEvery == flushEvery-1 {
			v.Flush()
		}
	}
	return 0, nil
}

func putBatch(e *words, base uint64, n int) (uint64, error) {
	src := e.fill(base)
	for i := range n {
		k := int(uint(i) % flushEvery)
		if err := e.win.Put(e.peer, e.disp[uint(i)%tableWords], src[k:k+1]); err != nil {
			return 0, err
		}
		if k == flushEvery-1 {
			if err := e.win.Flush(e.peer); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}

func putNBBatch(e *words, base uint64, n int) (uint64, error) {
	src := e.fill(base)
	for i := range n {
		k := int(uint(i) % flushEvery)
		if _, err := e.win.PutNB(e.peer, e.disp[uint(i)%tableWords], src[k:k+1]); err != nil {
			return 0, err
		}
		if k == flushEvery-1 {
			if err := e.win.Flush(e.peer); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}
