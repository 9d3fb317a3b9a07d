package main

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"time"

	"gopgas/pgas"
)

func headerOf(w *pgas.World, _ settings, pinned, command string) header {
	return header{
		Machine: processor(), Cores: runtime.NumCPU(), Kernel: kernel(), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Date: time.Now().UTC().Format("2006-01-02 15:04 MST"), Command: command, Ranks: w.Size(), Pinned: pinned,
	}
}

// processor is the model that the kernel names, or the architecture.
func processor() string {
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
