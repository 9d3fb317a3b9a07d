//go:build !linux

package eager

import "gopgas/internal/mem"

func ready(mem.Range) {}
