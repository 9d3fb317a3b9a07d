package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// tidyTime is how long a figure may take to clean up when the program is to end.
const tidyTime = 3 * time.Second

// untilTold calls f with a context that ends when a signal wants this program to end. f may clean up then, for tidyTime and until the next signal:
// folders that it has made, and ranks that it has started. Then end is called with the signal.
func untilTold(ctx context.Context, end func(os.Signal), f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	told := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // nohup and background shells ignore some
			signal.Notify(told, s)
		}
	}
	defer signal.Stop(told)
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	select {
	case err := <-done:
		return err
	case s := <-told:
		cancel()
		select {
		case <-done:
		case <-told:
		case <-time.After(tidyTime):
		}
		end(s)
		return fmt.Errorf("told to end by %v", s)
	}
}

// dieOf ends this program by a signal, so that whoever waits for it sees what it was.
func dieOf(s os.Signal) {
	signal.Reset(s)
	_ = syscall.Kill(os.Getpid(), s.(syscall.Signal)) // it cannot fail
	time.Sleep(time.Second)                           // in which it arrives
}
