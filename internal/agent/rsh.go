package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"gopgas/internal/crew"
)

// Carrier is how an agent is started on a host.
type Carrier uint8

// Carriers.
const (
	SSH  Carrier = iota // ssh, or a command that is called like it
	Fork                // a child of the launcher, whatever the host is called: to try a job of several hosts on one
	Srun                // a step of the Slurm allocation that the launcher runs in
)

// Command is what starts an agent on host. rsh is for SSH only: the words before the host's name; nil is ssh. To one that is called ssh options are added that make
// it ask nothing and notice the loss of the host; what the user wrote comes first, so it decides. path is that of pgasrun there.
func Command(c Carrier, rsh []string, host, path string) []string {
	switch c {
	case Fork:
		return []string{path, AgentFlag}
	case Srun: // the defaults that a user's environment can change are all named
		return []string{"srun", "--nodes=1", "--ntasks=1", "--nodelist=" + host, "--overlap", "--mpi=none", "--cpu-bind=none", "--input=all", path, AgentFlag}
	}
	words := append([]string{}, rsh...)
	if len(words) == 0 {
		words = []string{"ssh"}
	}
	if filepath.Base(words[0]) == "ssh" {
		words = append(words, "-T")
		for _, o := range []string{"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3", "ControlMaster=no"} {
			words = append(words, "-o", o)
		}
	}
	return append(words, host, quote(path)+" "+AgentFlag) // the far end gives this to a shell
}

// AgentFlag makes pgasrun an agent.
const AgentFlag = "--agent"

// quote makes a word that a shell reads back as it is.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("_-./=:,+@%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// greeting begins the first line that an agent writes. The number of the protocol and the version of its build follow.
const greeting = "pgasrun-agent "

// mostNoise is what a host may print before the greeting: shells that set themselves up are talkative.
const mostNoise = 64 << 10

// trouble is what came of waiting for a greeting.
type trouble struct {
	start    error         // the command could not be run
	late     time.Duration // nothing came for so long
	ended    bool          // the command closed its output
	noise    string        // the beginning of what came instead
	protocol int           // of the greeting
	version  string
}

// awaitGreeting reads to the end of the greeting.
func awaitGreeting(rd *bufio.Reader) trouble {
	var noise []byte
	for read := 0; read < mostNoise; {
		line, err := rd.ReadSlice('\n')
		read += len(line)
		if rest, ok := bytes.CutPrefix(line, []byte(greeting)); ok && err == nil {
			protocol, version, _ := strings.Cut(strings.TrimSpace(string(rest)), " ")
			n, _ := strconv.Atoi(protocol)
			return trouble{protocol: n, version: version}
		}
		if len(noise) < 200 {
			noise = append(noise, line...)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return trouble{ended: true, noise: oneLine(noise)}
		}
	}
	return trouble{noise: oneLine(noise)}
}

// oneLine makes of what a program printed a part of a sentence.
func oneLine(b []byte) string {
	s := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, string(b))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + " …"
	}
	return s
}

// explain says why a host was not reached.
func (h *Host) explain(t trouble) error {
	code := -1
	if h.cmd.ProcessState != nil {
		code = h.cmd.ProcessState.ExitCode()
	}
	return fmt.Errorf("reach host %s: %w", h.cfg.Name, explain(h.cfg, t, code, h.said.text()))
}

// explain is pure: said is what the command said on standard error, code its exit code, -1 where it has none.
func explain(c Config, t trouble, code int, said string) error {
	program, byHand := c.Command[0], strings.Join(c.Command, " ")
	if front, ok := strings.CutSuffix(byHand, " "+c.Command[len(c.Command)-1]); ok && c.Command[len(c.Command)-1] != AgentFlag {
		byHand = front + " true" // what a shell there is to run
	}
	heard := "it said nothing"
	if text := strings.TrimSpace(said + " " + t.noise); text != "" {
		heard = "it said: " + text
	}
	says := func(texts ...string) bool {
		for _, text := range texts {
			if strings.Contains(said, text) {
				return true
			}
		}
		return false
	}
	switch {
	case errors.Is(t.start, exec.ErrNotFound), errors.Is(t.start, fs.ErrNotExist):
		cure := "install it (Debian has ssh in openssh-client), or name another with --rsh"
		switch {
		case len(c.Command) == 2 && c.Command[1] == AgentFlag:
			cure = "it is to be the agent of such a host itself: name the path of pgasrun with --agent-path"
		case program == "srun":
			cure = "Slurm's programs are not in PATH: name another way with --launcher"
		}
		return fmt.Errorf("there is no program %s here to reach it with; %s: %w", program, cure, t.start)
	case t.start != nil:
		return fmt.Errorf("run %s: %w%s", program, t.start, crew.Cure(t.start, c.Ranks))
	case t.late > 0:
		return fmt.Errorf("no agent answered within %.1f s, %s; is the host up, and does this come back at once: %s", t.late.Seconds(), heard, byHand)
	case t.protocol != 0 || t.version != "":
		return fmt.Errorf("the pgasrun there is %q with protocol %d, this one is %q with protocol %d; install the same build on both, or name the path of one with --agent-path",
			t.version, t.protocol, c.Version, Protocol)
	case !t.ended:
		return fmt.Errorf("%d bytes came instead of an agent's greeting, %s; which of its shell's start-up files prints that?", mostNoise, heard)
	case code == 127:
		return fmt.Errorf("there is no pgasrun at that path there, %s; copy this build to it, or say where it is on that host with --agent-path", heard)
	case code == 126:
		return fmt.Errorf("the pgasrun there cannot be run, %s; is it executable, and built for that machine?", heard)
	case says("Permission denied"):
		return fmt.Errorf("it refused this user's key, %s; this must work without a password: %s (ssh-copy-id %s puts a key there)", heard, byHand, c.Name)
	case says("Host key verification failed", "HOST IDENTIFICATION HAS CHANGED"):
		return fmt.Errorf("its host key is not known here, %s; connect once by hand to check and accept it: ssh %s", heard, c.Name)
	case says("Could not resolve hostname"):
		return fmt.Errorf("there is no host of that name, %s; check the spelling in -H or the hostfile", heard)
	case says("Connection refused", "timed out", "No route to host", "Network is unreachable"):
		return fmt.Errorf("it cannot be reached, %s; is it up, and does a firewall let ssh through?", heard)
	case code < 0:
		return fmt.Errorf("%s closed its output before an agent answered, %s", program, heard)
	}
	return fmt.Errorf("%s ended with code %d before an agent answered, %s; try by hand: %s", program, code, heard, byHand)
}

// tail is the last lines that a program has said.
type tail struct {
	mu    sync.Mutex // guards what follows
	lines []string
}

// mostTold is how many lines are kept for a message.
const mostTold = 4

// add takes a line and returns it as it can be shown.
func (t *tail) add(line []byte) string {
	text := oneLine(line)
	t.mu.Lock()
	defer t.mu.Unlock()
	if text != "" {
		t.lines = append(t.lines, text)
		t.lines = t.lines[max(0, len(t.lines)-mostTold):]
	}
	return text
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, " ")
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == 0 {
		return ""
	}
	return t.lines[len(t.lines)-1]
}
