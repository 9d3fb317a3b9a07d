package pgas

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"gopgas/regmgr"
	"gopgas/transport/auto"
)

// What the soft NIC can be slowed down to. Beyond it a job would not teach anything but patience: a piece of a transfer is 64 KiB.
const (
	leastSoftBandwidth = 64 << 10
	mostSoftLatency    = time.Second
)

// softBounds refuses what cannot be meant.
func (c *Config) softBounds() error {
	if c.SoftBandwidth != 0 && c.SoftBandwidth < leastSoftBandwidth {
		return fmt.Errorf("%w: %s=%d bytes per second: want %d (64K) or more, such as 1.5G, or 0 for what the machine moves", ErrConfig, envBandwidth,
			c.SoftBandwidth, leastSoftBandwidth)
	}
	if c.SoftLatency < 0 || c.SoftLatency > mostSoftLatency {
		return fmt.Errorf("%w: %s=%v: want 0 to %v, such as 5us", ErrConfig, envLatency, c.SoftLatency, mostSoftLatency)
	}
	return nil
}

// idleDevice says that no transport will look at the device that was named; "" where one will.
func (c *Config) idleDevice(transport string) string {
	if c.Device == "" || transport != "soft" && transport != "shm" {
		return ""
	}
	return fmt.Sprintf("%s=%s is not used: %s, the transport of this job, has no devices; %s names another: %s", envDevice, c.Device, transport,
		envTransport, auto.Names())
}

// tooLittle says that no large transfer fits into RegLimit, which is allowed and seldom meant: all are copied, or fail where the policy never copies; "" where
// one does.
func (c *Config) tooLittle() string {
	least := max(int64(os.Getpagesize()), regmgr.LeastRegistered)
	if c.RegThreshold > 0 {
		least = max(int64(os.Getpagesize()), c.RegThreshold)
	}
	if c.RegLimit == 0 || c.RegLimit >= least {
		return ""
	}
	what := "are copied, which is right but slow"
	if c.Reg == regmgr.LeavePinnedNoEvict.String() {
		what = "fail, since " + envReg + "=" + c.Reg + " never copies"
	}
	return fmt.Sprintf("%s: found %d, needed %d bytes for the smallest of large transfers: over a NIC all %s; "+
		"to change it: more, such as %s=64M, or 0 for what the machine allows", envRegLimit, c.RegLimit, least, what, envRegLimit)
}

// noRankOf leaves out the folders to which the ranks of another job write, by rank: that of the pgasrun rank which has started this process, as PGAS_JOB shows, with
// its environment but not as a rank. It returns a line for each.
func (c *Config) noRankOf(job string) (lines []string) {
	if outer, ok := lookup(c.Environ, "PGAS_JOB"); !ok || outer == job {
		return nil
	}
	for _, f := range []struct {
		name   string
		folder *string
	}{{envTimeline, &c.Timeline}, {envTrace, &c.Trace}} {
		if *f.folder != "" {
			*f.folder = ""
			lines = append(lines, f.name+" is for the ranks of the job that this process was started in (PGAS_JOB) and is no rank of: it writes nothing there; "+
				"to have it write somewhere, set it and unset PGAS_JOB")
		}
	}
	return lines
}

// What tests read: names that begin so, and one more.
const (
	forTests    = "PGAS_TEST_"
	testsDemand = "PGAS_REQUIRE"
)

// misspelled returns a line for each variable in environ that looks like the library's and is none.
func misspelled(environ []string) []string {
	var known, lines []string
	for _, v := range Variables(nil) {
		known = append(known, v.Name)
	}
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "PGAS_") || strings.HasPrefix(name, forTests) || name == testsDemand || slices.Contains(known, name) {
			continue
		}
		line := name + " is no variable of the library, and is ignored"
		if near := nearest(name, known); near != "" {
			line += "; is " + near + " meant?"
		} else {
			line += "; pgasrun info lists those that there are"
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// nearest returns the name that is a few changes of a character away from the one given, at most three and half as many as it has behind
// PGAS_, of several the nearest; "": none.
func nearest(name string, known []string) (best string) {
	least := min(3, len(strings.TrimPrefix(name, "PGAS_"))/2) + 1
	for _, k := range known {
		if d := changes(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// changes counts how many characters of a must be added, left out, replaced or exchanged with their neighbour to make b of it
// (the restricted Damerau-Levenshtein distance).
func changes(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			n := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, rows[i-2][j-2]+1)
			}
			rows[i][j] = n
		}
	}
	return rows[len(a)][len(b)]
}

// warn prints a line for a person, once for the job.
func warn(rank int, lines ...string) {
	for _, l := range lines {
		if rank == 0 && l != "" {
			fmt.Fprintf(os.Stderr, "pgas: warning: %s\n", l)
		}
	}
}
