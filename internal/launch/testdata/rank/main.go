// Command rank plays the part of a rank that its first argument names; tests of the launcher start it.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gopgas/bootstrap"
	"gopgas/internal/control"
)

func main() {
	code, err := play(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "rank failed:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// self is this rank's number, known without a word with the launcher.
func self() int {
	n, _ := strconv.Atoi(os.Getenv("PGAS_RANK"))
	return n
}

// only says whether this rank is the one that args[0] names.
func only(args []string) bool { return len(args) == 0 || args[0] == strconv.Itoa(self()) }

func play(part string, args []string) (int, error) {
	switch part {
	case "exit": // exit RANK CODE: without PMI; the others exit with 0
		if !only(args) {
			return 0, nil
		}
		code, err := strconv.Atoi(args[1])
		return code, err
	case "die": // die RANK SIGNAL; the others sleep
		if only(args) {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return 0, err
			}
			return 0, syscall.Kill(os.Getpid(), syscall.Signal(n))
		}
		time.Sleep(time.Hour)
	case "print": // a partial last line on both streams, and a long one
		fmt.Printf("one %d\npartial %d", self(), self())
		fmt.Fprintf(os.Stderr, "err %d", self())
	case "flood": // many lines that must stay whole
		w := bufio.NewWriterSize(os.Stdout, 777)
		for i := range 2000 {
			fmt.Fprintf(w, "%d:%d:%s\n", self(), i, strings.Repeat("x", i%300))
		}
		return 0, w.Flush()
	case "stdin":
		b, err := io.ReadAll(os.Stdin)
		fmt.Printf("%d read %q\n", self(), b)
		return 0, err
	case "sleep":
		fmt.Println("sleeping", os.Getpid())
		time.Sleep(time.Hour)
	case "stubborn", "immovable": // ignores TERM and INT; and has another use for QUIT
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		if part == "immovable" {
			signal.Notify(make(chan os.Signal, 1), syscall.SIGQUIT)
		}
		fmt.Println("sleeping", os.Getpid())
		time.Sleep(time.Hour)
	case "signals": // prints what it receives; TERM ends it well
		c := make(chan os.Signal, 8)
		signal.Notify(c, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP, syscall.SIGINT)
		fmt.Println("ready", self())
		for s := range c {
			fmt.Println("got", self(), s)
			if s == syscall.SIGTERM {
				return 0, nil
			}
		}
	case "garble": // garble RANK|all SEED LINES: without leaving by itself; the others wait for it
		if args[0] == "all" || only(args) {
			return 0, garble(args[1], args[2])
		}
		return playJob("hang", nil)
	default:
		return playJob(part, args)
	}
	return 0, nil
}

// spin says once that it computes, when the system knows.
func spin() {
	for n := 1; ; n++ {
		if n == 1<<28 {
			fmt.Println("spinning")
		}
	}
}

// playJob plays the parts that join the job.
func playJob(part string, args []string) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	j, err := bootstrap.Open(ctx, os.Environ())
	if err != nil {
		return 0, err
	}
	conn, err := control.FromEnviron(os.Environ())
	if err != nil {
		return 0, err
	}
	gone := make(chan string, 8)
	if conn != nil {
		go control.Serve(conn, handler{j.Rank(), part == "wait", gone})
	}
	switch part {
	case "hello":
		cards, err := j.Exchange(ctx, []byte(strconv.Itoa(j.Rank())))
		if err != nil {
			return 0, err
		}
		secret, err := bootstrap.Secret(ctx, j)
		if err != nil {
			return 0, err
		}
		environ, _ := os.ReadFile("/proc/self/environ")
		cmdline, _ := os.ReadFile("/proc/self/cmdline")
		hex := fmt.Sprintf("%x", secret)
		if strings.Contains(string(environ)+string(cmdline), hex) {
			return 0, fmt.Errorf("the secret stands in the open")
		}
		fmt.Printf("rank %d of %d under %s in %s has %d cards and %s\n", j.Rank(), j.Size(), j.Launcher(), j.Name(), len(cards), hex)
	case "quit": // leaves with 0 in the middle of the job
		if only(args) {
			return 0, nil
		}
		time.Sleep(time.Hour)
	case "abort": // abort RANK CODE, then its own exit
		if only(args) {
			code, err := strconv.Atoi(args[1])
			if err != nil {
				return 0, err
			}
			if err := j.Abort(code, "out of luck"); err != nil {
				return 0, err
			}
			return 99, nil
		}
		return 0, j.Barrier(ctx)
	case "wait": // all for each other
		time.Sleep(time.Hour)
	case "hang": // rank 0 never comes to the barrier
		if j.Rank() == 0 {
			time.Sleep(time.Hour)
		}
		return 0, j.Barrier(ctx)
	case "spin": // rank 0 computes for ever, the others wait for it
		if j.Rank() == 0 {
			runtime.LockOSThread()
			spin()
		}
		return 0, j.Barrier(ctx)
	case "deaf": // hangs and does not answer the launcher
		if conn != nil {
			conn.Close()
		}
		fmt.Println("deaf", j.Rank())
		time.Sleep(time.Hour)
	case "survive": // rank 1 dies; the others are told and end well
		if j.Rank() == 1 {
			return 5, nil
		}
		fmt.Println("told:", <-gone)
		if err := j.Barrier(ctx); err == nil {
			return 0, fmt.Errorf("a barrier with a dead rank succeeded")
		}
		return 0, j.Close()
	case "stats":
		sendStats(conn, j.Rank())
	}
	return 0, j.Close()
}

func sendStats(conn net.Conn, rank int) {
	if os.Getenv("PGAS_STATS") != "1" || conn == nil {
		return
	}
	_ = control.SendStats(conn, stats(rank))
}

type handler struct {
	rank int
	all  bool // rank 0 waits too
	gone chan string
}

func (h handler) Waits() []control.Wait {
	switch {
	case h.rank == 0 && h.all:
		return []control.Wait{{Op: "signal", Peer: 1, Since: 1500 * time.Millisecond, Where: "main.go:7"}}
	case h.rank == 0:
		return nil
	}
	return []control.Wait{{Op: "barrier", Peer: 0, Since: 1500 * time.Millisecond, Where: "main.go:31"}}
}
func (h handler) Stats() control.Stats { return stats(h.rank) }
func (h handler) Sample() control.Sample {
	return control.Sample{
		Node: "here", Waits: h.Waits(), Transports: stats(h.rank).Transports,
		Flows: []control.Flow{{With: 1 - h.rank, Via: "shm", Ops: uint64(h.rank) + 1, Bytes: 8}},
	}
}
func (h handler) PeerGone(rank int, why string) { h.gone <- fmt.Sprint(rank, " ", why) }

func stats(rank int) control.Stats {
	return control.Stats{Rank: rank, Node: "here", Transports: map[string]map[string]control.Path{
		"shm": {"mapped": {Ops: uint64(rank) + 1, Bytes: 8, Waits: 1}, "bounce": {Ops: 1, Bytes: 100}},
		"tcp": {"inline": {}},
	}}
}
