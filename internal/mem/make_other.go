//go:build !linux

package mem

func inLargePages(Range) {}
