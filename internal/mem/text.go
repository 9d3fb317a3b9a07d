package mem

import "fmt"

// Text writes a number of bytes for people: "64.0 MiB".
func Text[N int | int64 | uint64](bytes N) string {
	switch {
	case bytes == 1:
		return "1 byte"
	case bytes < 1<<10:
		return fmt.Sprintf("%d bytes", bytes)
	}
	v, unit := float64(bytes), 0
	for ; v >= 1<<10; unit++ {
		v /= 1 << 10
	}
	return fmt.Sprintf("%.1f %ciB", v, "?KMGTPE"[unit])
}
