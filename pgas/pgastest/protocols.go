package pgastest

import (
	"fmt"
	"strconv"
	"strings"
)

// ProtocolsVariable names the environment variable that forces how transfers over NICs travel in worlds of goroutine ranks
// whose Config leaves that open, such as eager=bypass,bulk=superpipe,least=8: names of pgas.Config.Eager and Bulk, and the
// size in bytes from which transfers count as large. So every test can be run under every protocol.
const ProtocolsVariable = "PGAS_TEST_PROTOCOLS"

// force fills in what a list forces and the Config leaves open.
func (c *Config) force(list string) error {
	if list == "" {
		return nil
	}
	for item := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		switch name {
		case "eager":
			if c.Eager == "" {
				c.Eager = value
			}
		case "bulk":
			if c.Bulk == "" {
				c.Bulk = value
			}
		case "least":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 1 {
				return fmt.Errorf("%s=%q: least=%q is no number of bytes", ProtocolsVariable, list, value)
			}
			if c.RegLeast == 0 {
				c.RegLeast = n
			}
		default:
			return fmt.Errorf("%s=%q: want eager=, bulk= or least=", ProtocolsVariable, list)
		}
	}
	return nil
}
