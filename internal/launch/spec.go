package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gopgas/internal/agent"
	"gopgas/internal/control"
	"gopgas/internal/crew"
)

// MaxRanks bounds a job; beyond it the number is taken for a slip of the finger.
const MaxRanks = 4096

// Values of Spec.StdinTo that are not a rank.
const (
	StdinAll  = -1
	StdinNone = -2
)

// Exit codes of a job that no rank decides.
const (
	CodeTimeout = 124
	CodeLost    = 255 // the host of the first rank that failed was lost; ssh says it so, too
	CodeStopped = 1   // the caller's context ended
)

// Host is where a block of the ranks runs.
type Host struct {
	Name  string   // as messages and %h show it; empty: this machine's name
	Ranks int      // how many; the first rank of the job is the first of the first host
	Agent []string // what runs an agent there (see agent.Command); nil: the launcher starts the ranks itself, here
}

// Spec says what to run and how. The zero value of a field is the usual choice, except for N and Argv.
type Spec struct {
	N    int      // ranks, 1 to MaxRanks
	Argv []string // program and arguments of every rank; see crew.Lookup for how the program is found
	Dir  string   // working folder of the ranks; empty: the launcher's, which other hosts must have too

	Hosts   []Host        // where the ranks run, N in all; nil: all here
	Version string        // of this build; agents must have the same
	Ship    bool          // Argv[0] is a file here only: send it to the other hosts
	Reach   time.Duration // how long it may take to reach all hosts and start there; 0: DefaultReach

	Env []string // environment to hand on, as os.Environ returns it, less what L6 names; to other hosts only what begins with PGAS_
	Set []string // NAME=value, added to that or in place of it

	Stdin   *os.File // what StdinTo reads; nil: /dev/null for all
	StdinTo int      // a rank, StdinAll or StdinNone; everyone else reads /dev/null

	Stdout, Stderr io.Writer // of all ranks together; nil: thrown away. Written by one goroutine at a time.
	Log            io.Writer // the launcher's own lines; nil: Stderr
	Label          bool      // put "R: " before every line of rank R
	Prefix         string    // put this before every line: a pattern, see Patterns
	Only           []int     // ranks whose output goes to Stdout and Stderr; nil: all. Files get that of all.
	Output, Error  string    // patterns of files for the ranks' output; Error empty: both streams go to Output's
	Tee            bool      // what goes to files goes to Stdout and Stderr too
	Verbose        bool      // log starts and ends too

	Taken func(file string) string // what else of the caller's is written to a file, in words: no output of ranks goes there. Empty: nothing; nil: to none

	Bind   crew.Binding     // processors of each rank
	Report bool             // log what each rank was bound to
	Wrap   map[int][]string // by rank: a command that runs the program, such as a debugger's, before its own arguments

	Folder    string // an absolute folder here for files that ranks write: those of other hosts write to one there, and it is brought at the end
	FolderEnv string // the environment variable that tells them where

	Timeout time.Duration // hang report and end after that; 0: never
	Grace   time.Duration // from SIGTERM to SIGKILL; 0: DefaultGrace
	NoKill  bool          // let the others run on after a failure; they are told
	Stats   bool          // ask ranks to count (PGAS_STATS=1); see Result.Stats

	WarnAfter time.Duration // say once when all ranks have waited for each other for so long; 0: DefaultWarnAfter

	Watch      Watcher       // is told what becomes of the ranks; nil: nobody is, and no rank is asked
	WatchEvery time.Duration // how often each rank is asked; 0: DefaultWatchEvery

	Signals <-chan os.Signal // what the launcher received; nil: none
	Suspend func()           // stops the launcher itself, once it has stopped the ranks for a SIGTSTP; nil: it goes on
	Scratch string           // an absolute folder that the guard removes if the launcher is killed; empty: none
}

// DefaultGrace is enough for a program to write what it has and short enough for a person to wait.
const DefaultGrace = 2 * time.Second

// DefaultReach is longer than ssh takes to give up.
const DefaultReach = 30 * time.Second

// DefaultWatchEvery is often enough for a page that people look at.
const DefaultWatchEvery = 200 * time.Millisecond

// Watcher looks on while a job runs. Its methods are called by several goroutines, those about one rank in order, and must
// not wait for anything.
type Watcher interface {
	Started(rank, pid int)
	Sampled(rank int, s control.Sample) // only of ranks that answer; see package control
	Ended(rank int, how string)         // how: a few words that follow the rank's name
}

// Result tells how a job ended.
type Result struct {
	Job     string          // its name
	Code    int             // what a launcher exits with
	Cause   string          // the first failure as one sentence; empty where there was none
	Ranks   []RankEnd       // by rank
	Stats   []control.Stats // of the ranks that sent them, by rank
	Elapsed time.Duration   // from the first start to the last end
}

// RankEnd tells how one rank ended.
type RankEnd struct {
	Rank, PID int
	Host      string         // where it ran
	Exit      int            // exit code, where Signal is 0
	Signal    syscall.Signal // what killed it, or 0
	Lost      string         // what became of its host, where its own end is not known; else empty
	Clock     agent.Clock    // how the clock of its host stood to ours; known where Spec.Folder is wanted
	After     time.Duration  // since its start
	CPU       time.Duration  // used by it and by those of its children it waited for
	MaxRSS    int64          // bytes of its largest resident set
}

// code is the exit code as a shell gives it.
func (e RankEnd) code() int {
	if e.Lost != "" {
		return CodeLost
	}
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return e.Exit
}

// check finds what is wrong with s before anything is started, and fills in defaults.
func (s *Spec) check() error {
	if s.N < 1 || s.N > MaxRanks {
		return fmt.Errorf("%d ranks: wanted 1 to %d", s.N, MaxRanks)
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return errors.New("no program to run")
	}
	if s.StdinTo < StdinNone || s.StdinTo >= s.N {
		return fmt.Errorf("standard input for rank %d of a job of %d: wanted a rank from 0 to %d", s.StdinTo, s.N, s.N-1)
	}
	for _, v := range s.Set {
		if i := strings.IndexByte(v, '='); i < 1 || strings.IndexByte(v, 0) >= 0 {
			return fmt.Errorf("environment variable %q: wanted NAME=value", v)
		}
	}
	if err := s.checkThreads(); err != nil {
		return err
	}
	if err := s.checkOutput(); err != nil {
		return err
	}
	for r, words := range s.Wrap {
		if r < 0 || r >= s.N || len(words) == 0 {
			return fmt.Errorf("a command round rank %d of a job of %d: wanted words, and a rank from 0 to %d", r, s.N, s.N-1)
		}
	}
	if s.Timeout < 0 || s.Grace < 0 {
		return fmt.Errorf("time limit %v, grace %v: wanted 0 or more", s.Timeout, s.Grace)
	}
	if err := s.checkHosts(); err != nil {
		return err
	}
	if s.Grace == 0 {
		s.Grace = DefaultGrace
	}
	if s.WarnAfter <= 0 {
		s.WarnAfter = DefaultWarnAfter
	}
	if s.Reach <= 0 {
		s.Reach = DefaultReach
	}
	if s.WatchEvery <= 0 {
		s.WatchEvery = DefaultWatchEvery
	}
	if s.Stdout == nil {
		s.Stdout = io.Discard
	}
	if s.Stderr == nil {
		s.Stderr = io.Discard
	}
	if s.Log == nil {
		s.Log = s.Stderr
	}
	return nil
}

// checkHosts fills in the hosts.
func (s *Spec) checkHosts() error {
	name, err := os.Hostname()
	if err != nil {
		name = "this machine"
	}
	if s.Hosts == nil {
		s.Hosts = []Host{{Ranks: s.N}}
	}
	s.Hosts = slices.Clone(s.Hosts)
	sum, here := 0, false
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if h.Name == "" {
			h.Name = name
		}
		if h.Ranks < 1 {
			return fmt.Errorf("%d ranks on host %s: wanted 1 or more", h.Ranks, h.Name)
		}
		sum, here = sum+h.Ranks, here || h.Agent == nil
	}
	if sum != s.N {
		return fmt.Errorf("%d ranks on all hosts together: wanted %d", sum, s.N)
	}
	if !here {
		return nil
	}
	return crew.CheckDir(s.Dir)
}

// checkThreads refuses a GOMAXPROCS that the Go runtime of a rank would pass over without a word.
func (s *Spec) checkThreads() error {
	const name = "GOMAXPROCS"
	for _, from := range [][]string{s.Set, s.Env} { // what is set stands before what is handed on
		for _, v := range slices.Backward(from) {
			value, ok := strings.CutPrefix(v, name+"=")
			if n, err := strconv.Atoi(value); ok && value != "" && (err != nil || n < 1) {
				return fmt.Errorf("environment variable %s=%q: wanted the number of threads that run Go code in a rank, from 1 on; "+
					"without it there is one more than processors", name, value)
			}
			if ok {
				return nil
			}
		}
	}
	return nil
}

// Patterns says what the patterns of Prefix, Output and Error may hold.
const Patterns = "%r rank, %n number of ranks, %h host, %j job, %s stream (out or err), %t time; %3r is 007"

func (s *Spec) checkOutput() error {
	if s.Label && s.Prefix != "" {
		return errors.New("a label and a prefix: wanted one of them")
	}
	if s.Tee && s.Output == "" && s.Error == "" {
		return errors.New("tee without a file: name one with -o")
	}
	for _, r := range s.Only {
		if r < 0 || r >= s.N {
			return fmt.Errorf("only rank %d of a job of %d: wanted ranks from 0 to %d", r, s.N, s.N-1)
		}
	}
	return errors.Join(CheckPattern(s.Prefix, false), CheckPattern(s.Output, true), CheckPattern(s.Error, true))
}

// CheckPattern says what is wrong with a pattern for a prefix, or for the name of a file.
func CheckPattern(pattern string, file bool) error {
	if file {
		_, err := fileOf(pattern, place{})
		return err
	}
	_, err := expand(pattern, place{})
	return err
}
