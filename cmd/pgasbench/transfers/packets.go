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

// packetsFor is how many packets RDMA devices send while f runs, twice in a row, so that none counts that was sent again because an answer was
// late; -1 where there are no such devices.
func packetsFor(f func() error) (int, error) {
	if packetsSent(rdmaDevices) < 0 {
		return -1, nil
	}
	read := func() int { return settled(func() int { time.Sleep(countersAge); return packetsSent(rdmaDevices) }) }
	var last error
	n := settled(func() int {
		before := read()
		last = errors.Join(last, f())
		return read() - before
	})
	return n, last
}

// settled is what read returns twice in a row, or at last.
func settled(read func() int) int {
	last := read()
	for range 5 {
		n := read()
		if n == last {
			break
		}
		last = n
	}
	return last
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
