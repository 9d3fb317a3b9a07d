// Package sim holds programs of the kind that people write, on a thousand simulated ranks, and what they show: that the
// simulation gives the same answer and the same trace for the same seed, that faults end in errors and not in hangs, and
// what a simulated operation costs in real time.
package sim
