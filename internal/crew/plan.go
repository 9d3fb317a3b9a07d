package crew

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Plan says what is to run on one host. Ranks First to First+Count-1 of the job are there.
type Plan struct {
	Job   string `json:"job"`  // the job's name
	Size  int    `json:"size"` // ranks of the whole job
	First int    `json:"first"`
	Count int    `json:"count"`

	Argv []string         `json:"argv"` // program and arguments of every rank; see Lookup for how the program is found
	Wrap map[int][]string `json:"wrap"` // by rank: a command that runs the program, such as a debugger's, before its own arguments
	Dir  string           `json:"dir"`  // working folder; empty: that of this process

	Env    []string `json:"env"`              // environment to hand on, as os.Environ returns it, less what W2 names
	Set    []string `json:"set"`              // NAME=value, added to that or in place of it
	Folder string   `json:"folder,omitempty"` // an environment variable: an agent tells its ranks by it of a folder whose files come to the launcher
	Stats  bool     `json:"stats"`            // ask ranks to count (PGAS_STATS=1)
	Bind   Binding  `json:"bind"`             // processors of each rank
}

// argv is what rank runs: the program, or what was wrapped round it.
func (p *Plan) argv(rank int) []string {
	return append(slices.Clone(p.Wrap[rank]), p.Argv...)
}

// Streams are the standard streams of a rank. A nil In is /dev/null; a nil Out or Err is a pipe that Start makes.
type Streams struct{ In, Out, Err *os.File }

// Process is a started rank, on this machine or, where an agent stands between, on another. Its methods may be called by any goroutine.
type Process interface {
	// PID is the number of the leader, and of its group, on its host.
	PID() int
	// Output returns our ends of what it prints; nil where it writes to a file of ours itself.
	Output() (stdout, stderr io.ReadCloser)
	// Talk returns our ends of its PMI and control channels.
	Talk() (pmi, control net.Conn)
	// Signal sends sig to the whole group, without waiting. It is safe until the crew is reaped.
	Signal(sig syscall.Signal)
	// AskStacks makes the leader, whose Look said Stacks, print its stacks, which ends it.
	AskStacks()
	// Wait returns when the leader has ended, or will never be heard of again.
	Wait() (End, error)
	// Settle, after Wait, makes reads of Talk's connections end with what the leader had sent, though children of it may hold the other ends.
	Settle()
	// Look says what the system shows of the leader now. It waits for another host no longer than for stop.
	Look(stop <-chan struct{}) Look
	// Used is what the leader has used of the CPU, of another host as it was last told. It does not wait.
	Used() time.Duration
	// CloseOutput closes our ends of the output.
	CloseOutput()
}

// End tells how a rank ended.
type End struct {
	Exit   int            `json:"exit"`           // exit code, where Signal is 0
	Signal syscall.Signal `json:"signal"`         // what killed it, or 0
	Lost   string         `json:"lost,omitempty"` // why its end is not known; empty: it is
	After  time.Duration  `json:"after"`          // since its start
}

// Look is what the system shows of a process.
type Look struct {
	CPU    time.Duration `json:"cpu"`    // used so far; 0 where the system does not say
	Text   string        `json:"text"`   // in words, for a rank that does not answer
	Stacks bool          `json:"stacks"` // QUIT makes it print its stacks: it is a Go program whose run time has taken hold of the signal
}

// Usage is what a rank has used, known when it has been reaped.
type Usage struct {
	CPU    time.Duration `json:"cpu"`    // by it and by those of its children it waited for
	MaxRSS int64         `json:"maxrss"` // bytes of its largest resident set
}

// Sentinels for a program that cannot be run; match with errors.Is.
var (
	ErrNotFound      = errors.New("no such program")
	ErrNotExecutable = errors.New("not an executable program")
)

// wantedProgram ends the sentences of Lookup.
const wantedProgram = "; wanted the name of a program in PATH, or a path to one, such as ./heat"

// Lookup finds a program: with a slash in its name it is a path, seen from the launcher's folder; without, it is searched
// in PATH. The path returned is absolute. Errors wrap ErrNotFound or ErrNotExecutable.
func Lookup(program string) (string, error) {
	path := program
	if !strings.Contains(program, "/") {
		found, err := exec.LookPath(program)
		if err != nil && !errors.Is(err, exec.ErrDot) {
			hint := ""
			if _, err := os.Stat(program); err == nil {
				hint = fmt.Sprintf("; the file in this folder is called ./%s", program)
			}
			return "", fmt.Errorf("%w: %q is in no folder of PATH%s%s", ErrNotFound, program, hint, wantedProgram)
		}
		path = found
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "", fmt.Errorf("%w: there is no file %s%s", ErrNotFound, path, wantedProgram)
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrNotExecutable, err)
	case info.IsDir():
		return "", fmt.Errorf("%w: %s is a folder", ErrNotExecutable, path)
	case info.Mode()&0o111 == 0:
		return "", fmt.Errorf("%w: %s has mode %v; if it is a program, chmod +x %s lets it run", ErrNotExecutable, path, info.Mode().Perm(), path)
	}
	return filepath.Abs(path)
}

// Cure says what a person can do about a system error that stood in the way of so many ranks here, as words that follow it; empty: nothing is known.
func Cure(err error, n int) string {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return fmt.Sprintf("; for %d ranks pgasrun needs about %d open files: raise the limit where it runs, with ulimit -n", n, 5*n+20)
	case errors.Is(err, syscall.EAGAIN):
		return "; the limit on processes is reached: see ulimit -u and the pids controller of the control group"
	}
	return ""
}

// CheckDir says whether ranks can work in a folder; empty is this process's own. The kernel refuses a start where this user may not enter it with the error of a program that
// may not be run.
func CheckDir(dir string) error {
	if dir == "" {
		return nil
	}
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("working folder of the ranks: %w", err)
	} else if !info.IsDir() {
		return fmt.Errorf("working folder of the ranks: %s is not a folder", dir)
	}
	if err := unix.Access(dir, unix.X_OK); err != nil {
		return fmt.Errorf("working folder of the ranks: enter %s: %w; wanted one that this user may enter (chmod +x)", dir, err)
	}
	return nil
}
