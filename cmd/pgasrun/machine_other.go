//go:build !linux

package main

import (
	"runtime"
	"strconv"
)

// machineInfo knows little of systems other than Linux.
func machineInfo() []infoSection {
	return []infoSection{{"this machine", []infoRow{
		{"system", runtime.GOOS + "/" + runtime.GOARCH, "starting ranks needs Linux"},
		{"cores", strconv.Itoa(runtime.NumCPU()), ""},
	}}}
}
