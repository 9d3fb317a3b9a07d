package mem

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

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

// ErrBytes: the text is no number of bytes.
var ErrBytes = errors.New("want a number of bytes such as 65536, 512M or 1.5G (K, M, G and T are powers of 1024; at most 1024T)")

// ParseBytes reads what people write for a number of bytes, in variables and options: a number that is not negative, whole but for an optional unit, K, M, G or T.
// Units are powers of 1024, as those of ulimit, of cgroups and of what the library prints; K, Ki and KiB are the same.
func ParseBytes(s string) (int64, error) {
	unit := 1.0
	number := strings.TrimSuffix(strings.TrimSuffix(s, "iB"), "i")
	for i, suffix := range []string{"K", "M", "G", "T"} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			s, unit = rest, math.Pow(1024, float64(i+1))
			break
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	bytes := f * unit
	if err != nil || !(f >= 0) || bytes > 1<<50 || bytes > 0 && bytes < 1 || unit == 1 && bytes != math.Trunc(bytes) {
		return 0, ErrBytes // half a byte is none, and 0 means something else
	}
	return int64(bytes), nil
}
