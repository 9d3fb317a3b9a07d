package transfers

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// rdmaDevices is where the kernel shows RDMA devices.
const rdmaDevices = "/sys/class/infiniband"

// countersAge is more than a reading of the counters may be old: the kernel asks the device again after 10 ms (hw_counters/lifespan).
const countersAge = 30 * time.Millisecond

// packetsFor is how many packets RDMA devices usually send while f runs: now and then one is sent again because its answer is late, on a machine that is
// emulated above all. -1 where there are no such devices.
func packetsFor(f func() error) (int, error) {
	if packetsSent(rdmaDevices) < 0 {
		return -1, nil
	}
	read := func() int {
		return usual(2, func() int { time.Sleep(countersAge); return packetsSent(rdmaDevices) })
	}
	var failed error
	n := usual(3, func() int {
		before := read()
		failed = errors.Join(failed, f())
		return read() - before
	})
	return n, failed
}

// usual is what read returns first so many times, or most often of twenty.
func usual(times int, read func() int) (value int) {
	seen := map[int]int{}
	for range 20 {
		n := read()
		if seen[n]++; seen[n] > seen[value] {
			value = n
		}
		if seen[value] == times {
			break
		}
	}
	return value
}

// packetsSent is how many packets the RDMA devices shown in that folder have sent, all ports together; -1 where none counts them so, as
// Soft-RoCE does.
func packetsSent(folder string) int {
	files, _ := filepath.Glob(filepath.Join(folder, "*", "ports", "*", "hw_counters", "sent_pkts")) // the pattern is well formed
	sum := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return -1
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return -1
		}
		sum += n
	}
	if len(files) == 0 {
		return -1
	}
	return sum
}
