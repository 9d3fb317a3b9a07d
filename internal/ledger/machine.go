package ledger

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine tells this machine, and how this program was built, from others whose costs differ.
func Machine() string {
	return fmt.Sprintf("%s, %d cores, %s %s%s", Processor(), runtime.NumCPU(), runtime.GOOS, Kernel(), build())
}

// Processor is the model that the kernel names, or the architecture.
func Processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range bytes.Lines(text) {
			if key, v, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(key) == "model name" {
				return strings.TrimSpace(v)
			}
		}
	}
	return runtime.GOARCH
}

// Kernel is the kernel's release, or nothing.
func Kernel() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(text))
}

// build is what makes a program slower than others: the race detector, tags.
func build() (how string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if (s.Key == "-race" || s.Key == "-tags") && s.Value != "" {
			how += ", " + s.Key + "=" + s.Value
		}
	}
	return how
}
