package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"gopgas/internal/dashboard"
	"gopgas/internal/launch"
)

// openPage makes the page of --serve, if there is one, before anything is built or started, and has the job tell it what
// becomes of the ranks. The page ends with what is returned.
func openPage(c *cli.Context, spec *launch.Spec, stderr io.Writer) (end func(), err error) {
	if !c.IsSet("serve") {
		return func() {}, nil
	}
	server, err := dashboard.Listen(c.String("serve"))
	if err != nil {
		return nil, usage("--serve %w", err)
	}
	words := append([]string{filepath.Base(spec.Argv[0])}, spec.Argv[1:]...)
	board := dashboard.NewBoard(dashboard.Job{Program: strings.Join(words, " "), Ranks: spec.N, Every: watchEvery(spec.N)})
	server.Serve(board)
	spec.Watch, spec.WatchEvery, spec.Stats = board, watchEvery(spec.N), true
	fmt.Fprintf(stderr, "pgasrun: live page at %s, metrics at %smetrics\n", server.URL(), server.URL())
	return func() { _ = server.Close() }, nil
}

// watchEvery is how often each of n ranks is asked: five times a second, and in a large job so that all of them together are asked
// a thousand times at most.
func watchEvery(n int) time.Duration {
	return max(launch.DefaultWatchEvery, time.Duration(n)*time.Millisecond)
}
