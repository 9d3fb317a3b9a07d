// Package pgas is the world of ranks: it joins this process to its job, gives it the team of all ranks, global
// arrays and global pointers, and ends it in good order.
//
//	func main() {
//		pgas.Main(func(ctx context.Context, w *pgas.World) error {
//			a, err := pgas.NewArray[float64](ctx, w.Team(), 1<<20, pgas.Block())
//			if err != nil {
//				return err
//			}
//			lo, _ := a.Range((w.Rank() + 1) % w.Size())
//			if err := a.Put(lo, []float64{1, 2, 3}); err != nil {
//				return err
//			}
//			if err := a.Fence(ctx); err != nil {
//				return err
//			}
//			fmt.Println(w.Rank(), a.Local()[:3])
//			return a.Free(ctx)
//		})
//	}
//
// # Life of a world
//
// Init finds the launcher (pgasrun, a PMI-1 process manager, or none: then the world has one rank), exchanges
// what the ranks must know of each other, and maps the memory of those on the same node. Close is collective: it
// waits for all ranks and gives everything back. A rank that ends otherwise is gone, and every call of the others
// that needs it returns an error wrapping ErrPeerGone within a second. Survivors who go on in a team of their own (Team.Survivors) close the
// world in good order when all of them have come to that, and end with exit code 0. A World is a value: a process joins
// its launcher's job once, and may have several worlds of its own; package pgastest runs one with all its ranks in a test.
// After Close every call on what belonged to the world returns ErrClosed.
//
// # What is spread over a team
//
// An Array is a line of elements that a Layout deals out: Block, Cyclic, BlockCyclic or Irregular. A Matrix lies on its
// team in blocks, which may have frames of ghost cells. Both are one symmetric window, so the members' parts have one
// size, that of the largest. Data-path calls (Put, Get, At, Set, Gather, Scatter, AccumulateArea, atomics) take part of nobody else and
// complete as those of a window do, and what a member has of a range of an Array is one transfer, in whatever layout (but of GetNB, where short blocks that are dealt out go by themselves); whole-array calls (Fill, Apply, Combine, Reduce, CopyFrom, Resize, Transpose,
// UpdateGhosts) are collective: the owner computes, and a fence on either side keeps them apart from what comes before
// and after. One that a member leaves, because its context has ended, a transfer of its has failed, or a function that it
// was given has panicked there, all have left: the others get pgsync.ErrAbandoned from it or, where they are through it, from
// their next collective call.
//
// # Progress
//
// One-sided operations on ranks of the same node are loads and stores and need nobody's help; a goroutine that looks for deaths five times
// a second has them fail when their target is gone. Init sets GOMAXPROCS
// to the cores plus one, unless the environment sets it, so that the library's own goroutines are served while
// every core computes.
//
// # Configuration
//
// The environment is read in this package and nowhere below it. `pgasrun info` lists every variable.
//
// # Errors
//
// Every error that names a rank is an *OpError. Sentinels lie where their concept does and are repeated here:
// ErrPeerGone, ErrClosed, ErrUnsupported, ErrLimit; window.ErrRange; pgsync.ErrMismatch.
package pgas
