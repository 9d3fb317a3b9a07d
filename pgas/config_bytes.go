package pgas

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

var errBytes = errors.New("want a number of bytes such as 65536, 512M or 1.5G (K, M, G and T are powers of 1024)")

// parseBytes reads the value of every variable that counts bytes: a number that is not negative, with an optional unit, K, M, G or T.
// Units are powers of 1024, as those of ulimit, of cgroups and of what the library prints; K, Ki and KiB are the same.
func parseBytes(s string) (int64, error) {
	unit := 1.0
	number := strings.TrimSuffix(strings.TrimSuffix(s, "iB"), "i")
	for i, suffix := range []string{"K", "M", "G", "T"} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			s, unit = rest, math.Pow(1024, float64(i+1))
			break
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0) || f*unit > 1<<50 {
		return 0, errBytes
	}
	return int64(f * unit), nil
}
