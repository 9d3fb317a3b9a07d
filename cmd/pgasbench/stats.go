package main

import (
	"slices"
	"time"
)

// result is what one row brought: a value for each repeat.
type result struct {
	Row       string    `json:"row"`
	Title     string    `json:"title"`
	API       string    `json:"api"`
	Transport string    `json:"transport"`
	Unit      string    `json:"unit"`
	N         int       `json:"n"` // operations per repeat
	Values    []float64 `json:"values"`
	Bytes     int       `json:"bytes,omitempty"` // of a sweep over sizes
}

// summary is the short form of a result.
type summary struct{ median, least, most float64 }

// summarize returns the median, minimum and maximum; zeros of no values.
func summarize(values []float64) summary {
	if len(values) == 0 {
		return summary{}
	}
	v := slices.Sorted(slices.Values(values))
	mid := len(v) / 2
	median := v[mid]
	if len(v)%2 == 0 {
		median = (v[mid-1] + v[mid]) / 2
	}
	return summary{median, v[0], v[len(v)-1]}
}

// Units and how a value comes from a time.
const (
	unitNanos   = "ns"
	unitMillion = "M/s"
	unitBytes   = "MB/s"
)

// value is the figure of n operations of bytes each that took elapsed.
func value(unit string, n, bytes int, elapsed time.Duration) float64 {
	nanos := float64(max(elapsed, 1))
	switch unit {
	case unitMillion:
		return float64(n) / nanos * 1e3
	case unitBytes:
		return float64(n) * float64(bytes) / nanos * 1e3
	default:
		return nanos / float64(n)
	}
}

// calibrate returns how many operations take the target time, when run, given n, tells how long n operations take.
// It doubles n until a quarter of the target is reached.
func calibrate(target time.Duration, step int, run func(n int) (time.Duration, error)) (int, error) {
	for n := step; ; n *= 2 {
		t, err := run(n)
		if err != nil {
			return 0, err
		}
		if t > target/4 {
			return max(step, int(float64(n)*float64(target)/float64(t))/step*step), nil
		}
	}
}
