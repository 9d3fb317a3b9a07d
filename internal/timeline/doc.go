// Package timeline is what the ranks of a job did when: a recorder that takes spans of time from the library's own code, the file in
// which each rank keeps them, and the merging of those files into one that Perfetto (https://ui.perfetto.dev) and
// chrome://tracing open.
//
// # Terms
//
//   - Span: something that took time on a rank: a wait, a transfer, a collective call, a registration.
//   - Kept: all spans but short transfers below Least bytes, of which every Every-th is, so that a program of small puts
//     does not fill the file with them.
//   - Lost: spans for which there was no room, in memory or in the file. They are counted.
//   - Zero: when the rank's clock showed 0, by a clock that all ranks of a node share.
//   - Here: that clock as the picture's, which the launcher found by asking (package agent).
//   - Lane: a row of the picture. Spans of a lane do not overlap; where several goroutines wait at once there are several.
//
// # Life of a span
//
// Whoever ends something calls Recorder.Add: a copy under a short lock. A helper of the rank takes the spans every now and then,
// resolves their stacks to source lines, and appends them to the rank's file. When the job is over the launcher merges: it
// shifts every rank's times by its Zero, lays the spans out in lanes, and writes one process for each rank.
//
// # Formats
//
// A rank's file is lines of JSON: a Head, then Rows. The merged file is the JSON object format of "Trace Event Format" (Google,
// 2016): complete events (ph X) in microseconds, with metadata events (ph M) that name processes and threads.
//
// # Invariants
//
//   - L1: Add never waits for a disk and does not allocate.
//   - L2: a file is of use up to its last whole line, however its rank ended.
//   - L3: spans of one rank never overlap within a lane, and of different ranks are never in one process.
//
// # Limits
//
// MostRows spans for each rank. What makes the clocks of several nodes one is the merger's caller's to know (Source.Here).
package timeline
