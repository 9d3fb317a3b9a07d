package shm_test

import (
	"fmt"

	"gopgas/transport/shm"
)

// Memory that a process makes and maps a second time, as a peer would, by the ways that are asked for.
func ExampleMapper() {
	var ways shm.Ways
	ways, err := shm.ParseWays("memfd,proc")
	if err != nil {
		fmt.Println(err)
		return
	}
	var m *shm.Mapper
	m, err = shm.Open(shm.Config{What: "the example's memory", Ways: ways})
	if err != nil {
		fmt.Println(err)
		return
	}
	mine, token, err := m.Alloc(1 << 16)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := m.Map(token)
	if err != nil {
		fmt.Println(err)
		return
	}
	mine.Word64(0).Store(42)
	held := m.Stats()
	fmt.Println(ways, again.Word64(0).Load(), mine.Addr() == again.Addr(), held.Allocs, held.Maps)
	fmt.Println(m.Close())
	// Output:
	// memfd,proc 42 false 1 1
	// <nil>
}

// Goroutine ranks have memory of the Go heap, so that the race detector sees it.
func ExampleLocal() {
	ranks := shm.NewGroup(2, shm.Config{})
	mine, token, err := ranks[0].Alloc(4096)
	if err != nil {
		fmt.Println(err)
		return
	}
	theirs, err := ranks[1].Map(token)
	fmt.Println(mine.Addr() == theirs.Addr(), err)
	fmt.Println(ranks[1].Close(), ranks[0].Close())
	// Output:
	// true <nil>
	// <nil> <nil>
}

// What stands in the way of memory here.
func ExampleLimits() {
	l := shm.ReadLimits(shm.Roots{}) // the usual folders
	fmt.Println(l.Available > 0, l.Dir)
	// Output: true /dev/shm
}
