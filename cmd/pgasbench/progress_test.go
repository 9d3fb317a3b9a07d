package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgressInAFile(t *testing.T) {
	var out bytes.Buffer
	var now time.Duration
	p := newProgress(&out, func() time.Duration { return now })
	require.False(t, p.terminal)
	p.at(1, 3, "put")
	require.Empty(t, out.String(), "a short run says nothing")
	now = 3 * time.Second
	p.part(1, 5)
	require.Equal(t, "[1/3] put, repeat 2 of 5, 3s\n", out.String())
	now = 7 * time.Second
	p.at(2, 3, "get")
	p.part(4, 5)
	now = 8200 * time.Millisecond
	p.part(5, 5) // there is no sixth
	p.part(2, 5)
	require.Equal(t, "[1/3] put, repeat 2 of 5, 3s\n[2/3] get, repeat 3 of 5, 8.2s\n", out.String())
	p.end()
	require.NotContains(t, out.String(), "\r")
}

func TestProgressOnATerminal(t *testing.T) {
	var out bytes.Buffer
	var now time.Duration
	p := newProgress(&out, func() time.Duration { return now })
	p.terminal, p.said = true, quiet-betweenFrames
	p.at(1, 2, "a long name")
	require.Empty(t, out.String())
	now = 4 * time.Second
	p.at(1, 2, "a long name")
	now += betweenFrames
	p.at(2, 2, "b")
	require.Equal(t, "\r[1/2] a long name, 4s\r[2/2] b, 4.2s        ", out.String(), "what stood there is covered")
	p.end()
	require.Equal(t, "\r             \r", out.String()[len(out.String())-15:])
	(*progress)(nil).at(1, 1, "") // of ranks that say nothing
	(*progress)(nil).part(1, 2)
	(*progress)(nil).end()
}
