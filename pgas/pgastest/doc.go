// Package pgastest runs worlds in tests: with all ranks as goroutines of the test, so that the race detector and a
// debugger see every rank, or with each rank as a process, without a launcher.
//
//	func TestNeighbours(t *testing.T) {
//		pgastest.Run(t, 4, func(ctx context.Context, w *pgas.World) error {
//			…
//			return nil
//		})
//	}
//
// # Goroutine ranks
//
// Run maps the ranks' memory in the Go heap, so accesses that no synchronisation orders are reported by go test -race
// as in any Go program. With Config.NIC the ranks share nothing and all operations go through an in-process NIC:
// what passes there assumes no shared memory. Config.Over names a real NIC instead: each rank opens one of its own, which
// for soft and tcp needs leave to lock memory.
//
// # Paths
//
// A test of everything above the NICs runs over Paths, and over ProcPaths where its ranks are processes. On a machine with a
// NIC of its own the same compiled tests run over that: PGAS_TEST_PATHS=verbs. PGAS_TEST_PATHS=tcp,soft picks some, and nodes-verbs has
// nodes of one and of two ranks, which is where mapped memory and a NIC meet.
//
// # Simulated ranks
//
// RunSim runs the ranks as coroutines in virtual time, over simulated NICs whose costs are a model's. A thousand ranks fit
// into one test. Equal seeds give equal runs, to the hash of everything that happened; a world in which nothing can
// happen any more fails at once with what every rank waits for. Such programs may block in the library's calls only,
// and take virtual time for computation only where they charge it with Compute. The race detector sees nothing there,
// because nothing is concurrent.
//
// Each runs a test on every one of Paths (with -short on some, PathsOf), in worlds of several sizes, and in virtual time; EachReal leaves virtual time out. A
// Program is a program's own test: its output and its refusals in worlds of all sizes. Calls are the calls of a data path, which are
// counted for allocations and timed: a million in mapped memory, and over NICs as many as PGAS_TEST_CALLS says. Example runs a world in an Example function.
//
// # Process ranks
//
// RunProcs runs the test binary again, once for each rank, with only the calling test selected. In the test itself it
// returns when all ranks have ended; in a rank it runs the function and does not return.
//
// # Failures
//
// A rank that returns an error, or panics, fails the test and is gone for the others. A world that has not ended
// within the time limit fails the test with what every rank waits for.
package pgastest
