package main

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"gopgas/internal/ledger"
)

func headerOf(ranks int, pinned, command string) header {
	return header{
		Machine: ledger.Processor(), Cores: runtime.NumCPU(), Kernel: strings.TrimSpace(runtime.GOOS + " " + ledger.Kernel()), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Date: time.Now().UTC().Format("2006-01-02 15:04 MST"), Commit: commit(), Load: load(), Command: command, Ranks: ranks, Pinned: pinned,
	}
}

// load is how many threads wanted to run in the last minute, or unknown.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return unknown
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

const unknown = "unknown"

// commit is the revision that this program was built from, or, where go build was not to record that, the one of the working
// directory.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	revision, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	if revision != "" {
		return revision + changed
	}
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return unknown
	}
	return string(bytes.TrimSpace(out)) + " (of the working directory)"
}
