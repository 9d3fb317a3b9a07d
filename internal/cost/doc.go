// Package cost is what the decisions about registered memory know of the machine: how long it takes to register and to
// deregister so many pages, to copy so many bytes, to post an operation and to look something up.
//
// # Terms
//
//   - Line: nanoseconds as a·pages + b (of posts: a·operations + b), fitted to measurements by least squares, with the largest residual. Mean is the
//     line; Upper is the line plus that residual, the most that the measurements support. Whoever must not be late uses
//     Upper (Li et al., CF 2011, section 3.2: "estimating the maximum potential cost").
//   - Curve: nanoseconds by bytes, straight between measured sizes: a copy falls through the levels of the cache.
//   - Model: all costs of one machine and NIC, with the origin of each. It is measured, loaded from a file, or one of the
//     named ones, which have a paper's constants.
//   - Probe: the machine as a measurement needs it: a clock and functions that do the things that cost.
//
// # Life of a model
//
// Measure times registrations, posts and copies of a few sizes, in turns until the time is over that it is given, each of them once
// in any case, and fits the lines. What disturbed a try makes it longer, never shorter, so the least of the
// tries of a size is taken for the fit, and the largest deviation of these from the line is the residual. Write keeps a
// model as JSON; Read takes it up again, on the same machine or for a replay on another.
//
// # Invariants
//
//   - K1: costs are never negative, and grow with pages or bytes.
//   - K2: Upper(n) >= Mean(n) for all n, and Upper is at least every measurement that the line was fitted to.
//   - K3: a constant that no paper prints is said to be derived or assumed, in Notes.
//   - K4: a file that cannot be a model is refused with the place where it is wrong.
//
// # Concurrency
//
// Models are values; all functions may be called by any goroutine. Measure calls the probe's functions from the caller's
// goroutine only.
//
// # Limits
//
// Measuring takes Probe.Time, by default 15 ms, and no longer, unless a try of each size takes longer than that. A machine that
// takes the processor away meanwhile adds that once.
package cost
