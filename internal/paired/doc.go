// Package paired compares what was measured by turns: what disturbs a machine for a while disturbs both of two neighbours, and leaves their
// quotient alone.
//
// # Terms
//
//   - Pair: the i-th value of the one and the i-th of the other, taken one right after the other.
//   - Quotient: the other's value over the base's, of a pair.
//   - Interval: where the median of quotients lies, 95 times of a hundred at least.
//   - Control: the quotients of the base measured a second time in the same turns. What it says of the machine holds for the rest too.
//
// # How the interval is found
//
// By order statistics, without a thought about how quotients are distributed: of n pairs the number of those below the true median has the
// binomial distribution of n throws of a coin. So the k-th smallest and the k-th greatest quotient enclose it but for twice the probability of
// fewer than k heads, and k is the greatest for which that is at most 5 %. Fewer than six pairs allow no such interval: their least and their
// greatest quotient enclose it in 1 - 2^(1-n), which is 94 % for five, 88 for four, 75 for three.
//
// # Limits
//
// Pairs count as independent of each other. What lasts for many turns makes neighbouring pairs alike and the interval too narrow, which
// the control shows as well: if its interval leaves 1 out, no difference of that size can be trusted.
package paired
