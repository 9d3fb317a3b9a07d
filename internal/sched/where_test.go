package sched

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhereIsTheProgram: a line of a program's, also where one of Go's own functions has called back.
func TestWhereIsTheProgram(t *testing.T) {
	var lines []string
	look := func() int {
		var pcs [32]uintptr
		n := runtime.Callers(0, pcs[:]) // runtime.Callers itself is the innermost one
		lines = append(lines, Where(pcs[:n]))
		return 0
	}
	look()
	slices.SortFunc([]int{2, 1}, func(int, int) int { return look() })
	require.NotEmpty(t, lines)
	for _, l := range lines {
		require.True(t, strings.HasPrefix(l, "sched/where_test.go:"), l)
	}
	require.Empty(t, Where(nil))
	end := make(chan string)
	go func(pcs []uintptr) { // as in a goroutine of the library's own
		n := runtime.Callers(0, pcs)
		end <- Where(pcs[n-1 : n])
	}(make([]uintptr, 32))
	require.Empty(t, <-end, "where a goroutine ends is no place of a program's")
	for function, want := range map[string]bool{
		"runtime.memmove": true, "slices.insertionSortOrdered[...]": true, "encoding/binary.Read": true, "sync/atomic.AddInt64": true,
		"slices.SortFunc[go.shape.[]example.com/x.T]": true, "net.(*conn).Read": true, "net.example.org/prog/step.Run": false, "io%2egithub.Run": false,
		"main.main": false, "gopgas/sync.Broadcast[...]": false, "example.com/sort.Sort": false, "sorted.Sort": false,
	} {
		require.Equal(t, want, inGo(function), function)
	}
}
