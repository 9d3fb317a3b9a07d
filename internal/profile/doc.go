// Package profile marks what a goroutine does while it is in the library, for Go's own tools: labels for the samples of a CPU or
// goroutine profile (runtime/pprof), and regions for an execution trace (runtime/trace). Each names the operation and the rank
// that it is for, so that a profile of any program can be cut by them:
//
//	go tool pprof -tagfocus pgas_op=put -tags cpu.out
//	go tool trace trace.out          "User-defined regions": pgas put 3
//
// # Terms
//
//   - Label: pgas_op is the operation in the API's words; pgas_target the rank that it is for, where it is for one.
//   - Region: the time of one call, of type "pgas OP" or "pgas OP TARGET". There are none while no trace is being recorded.
//
// # Life of a mark
//
// The engine calls Begin when a call enters it and ends the Mark when the call returns, both on the goroutine of the call.
// Labels are made once for each operation and target and kept.
//
// # Invariants
//
//   - M1: without a Marks nothing of this is reached but a comparison with nil, and that only in calls that go through the
//     engine.
//   - M2: End gives the goroutine the labels of the context that Within was given, as pprof.Do does; after Begin, which is for
//     calls without a context, it has none.
//
// # Limits
//
// Of calls within calls the innermost is named. Labels that a program has set on a goroutine are gone after a put or a get, which
// know no context: who needs them asks for regions alone.
package profile
