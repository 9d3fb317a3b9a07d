package bootstrap

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Host says where a process runs. Cards carry it; it has no secrets.
type Host struct {
	Name   string // as the machine calls itself; several machines may share one
	BootID string // one boot of one kernel; empty where the system has none

	// Numbers of the namespaces this process lives in, 0 where the system has none.
	PIDNamespace, IPCNamespace, MountNamespace uint64

	PID int // within PIDNamespace
}

// ThisHost describes the calling process. What the system does not tell stays empty.
func ThisHost() Host {
	h := Host{PID: os.Getpid()}
	h.Name, _ = os.Hostname()
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		h.BootID = strings.TrimSpace(string(id))
	}
	h.PIDNamespace = namespace("pid")
	h.IPCNamespace = namespace("ipc")
	h.MountNamespace = namespace("mnt")
	return h
}

// namespace reads "kind:[4026531836]".
func namespace(kind string) uint64 {
	link, err := os.Readlink("/proc/self/ns/" + kind)
	if err != nil {
		return 0
	}
	link = strings.TrimSuffix(strings.TrimPrefix(link, kind+":["), "]")
	n, _ := strconv.ParseUint(link, 10, 64)
	return n
}

// Node names the node of h: it is equal for two processes if and only if they can be expected to share memory, see each
// other's processes and the same files. One kernel is not enough: containers share it and nothing else. Names decide
// only where there is no boot id. Confirm by really opening the peer's memory.
func (h Host) Node() string {
	kernel := "boot " + h.BootID
	if h.BootID == "" {
		kernel = "name " + h.Name
	}
	return fmt.Sprint(kernel, " ", h.PIDNamespace, " ", h.IPCNamespace, " ", h.MountNamespace)
}

// SameNode says whether a and b run on one node.
func SameNode(a, b Host) bool { return a.Node() == b.Node() }
