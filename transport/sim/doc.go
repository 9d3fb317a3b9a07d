// Package sim is a NIC in virtual time: the machine that it belongs to is a Model, its program the real protocol code
// above the seam. It stands on internal/sched's third body, in which all ranks of a world are coroutines.
package sim
