package main

import (
	"github.com/urfave/cli/v2"

	"gopgas/internal/mem"
)

// byteCount is the value of an option that counts bytes: 65536, 64K or 1.5M.
type byteCount int

// Set implements cli.Generic.
func (n *byteCount) Set(s string) error {
	bytes, err := mem.ParseBytes(s)
	*n = byteCount(bytes)
	return err
}

// String implements cli.Generic.
func (n *byteCount) String() string { return sizeName(int(*n)) }

func bytesFlag(name string, value int, usage string) cli.Flag {
	n := byteCount(value)
	return &cli.GenericFlag{Name: name, Value: &n, Usage: usage}
}

// bytesOf returns the value of an option that counts bytes, 0 where the command has no such.
func bytesOf(c *cli.Context, name string) int {
	if n, ok := c.Generic(name).(*byteCount); ok {
		return int(*n)
	}
	return 0
}
