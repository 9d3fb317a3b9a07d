package pgas

import (
	"fmt"
	"strings"
)

// sharedNames are the variables of the settings that must be equal on all ranks.
func sharedNames() []string {
	return []string{envTransport, envLocal, envNodes, envStats, envFailure, envCheck}
}

// shared is those settings: a line for each of sharedNames, empty where it is the default.
func (c *Config) shared() string {
	local, stats, failure := "", "", ""
	if c.NoLocal {
		local = "off"
	}
	if c.Stats {
		stats = "1"
	}
	if c.FailureTimeout != 0 {
		failure = c.FailureTimeout.String()
	}
	return strings.Join([]string{c.Transport, local, c.nodesText(), stats, failure, c.Check}, "\n")
}

// unlike tells those of two ranks' shared settings that differ.
func unlike(a, b string) (ofA, ofB string) {
	names, as, bs := sharedNames(), strings.Split(a, "\n"), strings.Split(b, "\n")
	if len(as) != len(names) || len(bs) != len(names) {
		return fmt.Sprintf("%q", a), fmt.Sprintf("%q", b) // of builds that are not the same
	}
	tell := func(to *[]string, name, value string) {
		if value == "" {
			*to = append(*to, name+" unset")
		} else {
			*to = append(*to, name+"="+value)
		}
	}
	var da, db []string
	for i, name := range names {
		if as[i] != bs[i] {
			tell(&da, name, as[i])
			tell(&db, name, bs[i])
		}
	}
	return strings.Join(da, " "), strings.Join(db, " ")
}
