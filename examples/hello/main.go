// Command hello is the smallest program with ranks: everyone says who it is, and rank 0 calls the roll.
//
// What it shows: the same program runs N times, and each copy (a rank) knows its number. A rank writes into the
// memory of another one by itself: rank 0 takes no step to receive the entries of its roll. It only has to know
// when they are all there, which is what the fence is for.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"gopgas/pgas"
)

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		return run(ctx, w, os.Args[1:], os.Stdout)
	})
}

// run is the whole program as one rank lives it.
func run(ctx context.Context, w *pgas.World, args []string, out io.Writer) error {
	if len(args) > 0 {
		return fmt.Errorf("hello takes no arguments, but was given %q", args)
	}
	me, next := w.Rank(), (w.Rank()+1)%w.Size()
	node, host := w.Node(me)
	fmt.Fprintf(out, "rank %d of %d on node %d (%s), reaches rank %d over %s\n", me, w.Size(), node, host, next, w.Transport(next))

	// Every rank now has Size words, all zero, and roll points to the first of its own. That all call Alloc with
	// the same arguments, in the same order, is how the ranks agree on which memory is meant.
	roll, err := pgas.Alloc[int64](ctx, w.Team(), w.Size())
	if err != nil {
		return err
	}
	// The same word as seen on rank 0, moved on to my line of its roll: a pointer into another rank's memory.
	if err := roll.On(0).Add(me).Store(int64(me) + 1); err != nil {
		return err
	}
	// After the fence everything that anybody has stored before it is visible to everybody.
	if err := roll.Window().Fence(ctx); err != nil {
		return err
	}
	if me == 0 {
		entries, _ := roll.Local() // what the others have written, as an ordinary slice
		if err := check(entries); err != nil {
			return err
		}
		fmt.Fprintf(out, "all %d ranks are on the roll\n", w.Size())
	}
	return roll.Free(ctx)
}

// check verifies that each rank has signed on its own line.
func check(roll []int64) error {
	for r, entry := range roll {
		if entry != int64(r)+1 {
			return fmt.Errorf("the roll has %d on the line of rank %d: wanted %d", entry, r, r+1)
		}
	}
	return nil
}
