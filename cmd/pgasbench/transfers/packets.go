package transfers

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// rdmaDevices is where the kernel shows RDMA devices.
const rdmaDevices = "/sys/class/infiniband"

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
