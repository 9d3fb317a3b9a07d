package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/urfave/cli/v2"

	"gopgas/internal/agent"
	"gopgas/internal/launch"
)

// slots is a host and how many ranks it takes; 0: nobody has said.
type slots struct {
	host string
	n    int
}

// cutCount splits HOST:RANKS; said is false where there is no colon. An address with colons of its own has brackets.
func cutCount(item string) (host, count string, said bool) {
	if i := strings.LastIndexByte(item, ':'); i >= 0 && !strings.Contains(item[i:], "]") {
		return item[:i], item[i+1:], true
	}
	return item, "", false
}

// parseHosts reads what -H takes: hosts with commas between, each with :RANKS or without. A host that is named again takes more.
func parseHosts(list string) (out []slots, err error) {
	for item := range strings.SplitSeq(list, ",") {
		host, count, said := cutCount(item)
		if said && count == "" {
			return nil, usage("-H %s: wanted HOST or HOST:RANKS, such as a:2,b", list)
		}
		if out, err = addHost(out, host, count); err != nil {
			return nil, usage("-H %s: %w", list, err)
		}
	}
	return out, nil
}

// addHost appends a host; count is empty where nothing is said.
func addHost(to []slots, host, count string) ([]slots, error) {
	host = strings.TrimSpace(host)
	if bare, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(bare, "]") {
		host = strings.TrimSuffix(bare, "]")
	} else if strings.Contains(host, ":") {
		return nil, fmt.Errorf("%q is not the name of a host; an address with colons has brackets, such as [fe80::1]:2", host)
	}
	odd := func(r rune) bool {
		return r <= ' ' || !unicode.IsPrint(r) || strings.ContainsRune("\"'`$&|;<>()*?!\\#/=", r)
	}
	if host == "" || strings.HasPrefix(host, "-") || strings.IndexFunc(host, odd) >= 0 { // a dash would be a flag to ssh
		return nil, fmt.Errorf("%q is not the name of a host", host)
	}
	n := 0
	if count != "" {
		var err error
		if n, err = strconv.Atoi(count); err != nil || n < 1 || n > launch.MaxRanks {
			return nil, fmt.Errorf("%q ranks on host %s: wanted a number from 1 to %d", count, host, launch.MaxRanks)
		}
	}
	if i := slices.IndexFunc(to, func(s slots) bool { return s.host == host }); i >= 0 {
		to[i].n = max(to[i].n, 1) + max(n, 1)
		return to, nil
	}
	return append(to, slots{host, n}), nil
}

// readHostfile reads a file of hosts, one a line: HOST, HOST:RANKS or HOST slots=RANKS. What follows a # is not looked at.
func readHostfile(r io.Reader) (out []slots, err error) {
	const byteOrder = "\ufeff" // with which some editors begin a file
	sc := bufio.NewScanner(r)
	line := 1
	for ; sc.Scan(); line++ {
		whole := sc.Text()
		if line == 1 {
			whole = strings.TrimPrefix(whole, byteOrder)
		}
		text, _, _ := strings.Cut(whole, "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		host, count, said := cutCount(words[0])
		wrong := len(words) > 2
		if len(words) == 2 {
			n, ok := strings.CutPrefix(words[1], "slots=")
			wrong, count, said = !ok || said, n, true
		}
		if wrong || said && count == "" {
			return nil, fmt.Errorf("line %d: %q: wanted HOST, HOST:RANKS or HOST slots=RANKS", line, strings.TrimSpace(text))
		}
		if out, err = addHost(out, host, count); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if err := sc.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d is longer than %d bytes: wanted HOST, HOST:RANKS or HOST slots=RANKS", line, bufio.MaxScanTokenSize-1)
	} else if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no host in it: wanted one a line, as HOST, HOST:RANKS or HOST slots=RANKS")
	}
	return out, nil
}

// share says how many ranks each host gets, in their order; hosts that get none are left out. n is the number of ranks, 0 where it was not given: then all hosts
// are filled. perHost is that of hosts of which nobody has said how many they take, 0 where it was not given either: they share n in equal
// blocks if no host has a number, and take one each otherwise. It is pure.
func share(hosts []slots, n, perHost int) ([]slots, error) {
	said := perHost > 0
	for _, h := range hosts {
		said = said || h.n > 0
	}
	out, room := make([]slots, 0, len(hosts)), 0
	for i, h := range hosts {
		switch {
		case h.n > 0:
		case said || n == 0:
			h.n = max(perHost, 1)
		default:
			if h.n = n / len(hosts); i < n%len(hosts) {
				h.n++
			}
		}
		if n > 0 {
			h.n = min(h.n, n-room)
		}
		if room += h.n; h.n > 0 {
			out = append(out, h)
		}
	}
	switch {
	case n > room:
		return nil, usage("-n %d: the hosts take %d ranks; raise the numbers behind them or --ppn, or name more hosts", n, room)
	case room > launch.MaxRanks:
		return nil, usage("%d ranks on all hosts: wanted %d at most", room, launch.MaxRanks)
	}
	return out, nil
}

// namedHosts returns the hosts that the command line names, nil where it names none.
func namedHosts(c *cli.Context, environ []string) ([]slots, error) {
	list, file := c.String("hosts"), c.String("hostfile")
	switch {
	case c.IsSet("hosts") && c.IsSet("hostfile"):
		return nil, usage("-H and --hostfile: wanted one of them")
	case c.IsSet("hosts"):
		return parseHosts(list)
	case c.IsSet("hostfile"):
		f, err := os.Open(file)
		if err != nil {
			return nil, usage("--hostfile: %w", err)
		}
		defer f.Close()
		hosts, err := readHostfile(f)
		if err != nil {
			return nil, usage("--hostfile %s: %w", file, err)
		}
		return hosts, nil
	case c.String("launcher") == "srun":
		return allocated(environ)
	}
	for _, name := range []string{"ppn", "launcher", "rsh", "agent-path"} {
		if c.IsSet(name) {
			return nil, usage("--%s is about other hosts, and none is named: wanted -H a,b or --hostfile FILE", name)
		}
	}
	return nil, nil
}

// allocated are the hosts of the Slurm allocation that this process runs in.
func allocated(environ []string) (out []slots, err error) {
	list := ""
	for _, e := range environ {
		if v, ok := strings.CutPrefix(e, "SLURM_JOB_NODELIST="); ok {
			list = v
		}
	}
	if list == "" {
		return nil, usage("--launcher srun outside of a Slurm allocation: begin one with salloc -N HOSTS, or name its hosts with -H")
	}
	names, err := exec.Command("scontrol", "show", "hostnames", list).Output()
	if err != nil {
		return nil, usage("--launcher srun: scontrol show hostnames %s: %w; name the hosts with -H", list, err)
	}
	for name := range strings.FieldsSeq(string(names)) {
		if out, err = addHost(out, name, ""); err != nil {
			return nil, usage("--launcher srun: %w", err)
		}
	}
	return out, nil
}

// place reads the flags that say where ranks run, and sets the number of ranks, which -n says or the hosts do.
func place(c *cli.Context, s *launch.Spec, environ []string) error {
	hosts, err := namedHosts(c, environ)
	if err != nil || hosts == nil {
		return err
	}
	n, perHost := 0, 0
	if c.IsSet("n") {
		n = s.N
	}
	if c.IsSet("ppn") {
		if perHost, err = strconv.Atoi(c.String("ppn")); err != nil || perHost < 1 || perHost > launch.MaxRanks {
			return usage("--ppn %s: wanted a number of ranks for each host, 1 to %d", c.String("ppn"), launch.MaxRanks)
		}
	}
	if hosts, err = share(hosts, n, perHost); err != nil {
		return err
	}
	carriers := map[string]agent.Carrier{"ssh": agent.SSH, "fork": agent.Fork, "srun": agent.Srun}
	carrier, ok := carriers[c.String("launcher")]
	if !ok {
		return usage("--launcher %s: wanted ssh, fork or srun; srun --mpi=pmi2 and mpiexec start the ranks themselves", c.String("launcher"))
	}
	rsh, err := splitWords(c.String("rsh"))
	if err != nil || c.IsSet("rsh") && (len(rsh) == 0 || carrier != agent.SSH) {
		return usage("--rsh %s: wanted a command that is called like ssh, such as 'ssh -p 2222', and no other --launcher", c.String("rsh"))
	}
	path := c.String("agent-path")
	if path == "" {
		if path, err = os.Executable(); err != nil {
			return fmt.Errorf("where this pgasrun is, so that it can be started on other hosts: %w; say it with --agent-path", err)
		}
	}
	own, _ := os.Hostname()
	s.N = 0
	for _, h := range hosts {
		at := launch.Host{Name: h.host, Ranks: h.n}
		if carrier != agent.SSH || c.IsSet("rsh") || h.host != own && h.host != "localhost" { // who names a way wants it taken
			at.Agent = agent.Command(carrier, rsh, h.host, path)
		}
		s.Hosts = append(s.Hosts, at)
		s.N += h.n
	}
	s.Version = buildVersion()
	return nil
}

// elsewhere says whether ranks run on other hosts.
func elsewhere(s *launch.Spec) bool {
	return slices.ContainsFunc(s.Hosts, func(h launch.Host) bool { return h.Agent != nil })
}

// runAgent is pgasrun on a host that another pgasrun has reached.
func runAgent(s streams) error {
	out, ok := s.out.(io.WriteCloser)
	if !ok {
		return usage("%s is what pgasrun starts on other hosts; it is of no use by itself", agent.AgentFlag)
	}
	// A signal ends it as it ends any program: its guard and the kernel end the ranks. A launcher that has gone is no such end: writing to it is an error.
	signal.Reset()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return agent.Serve(s.in, out, os.Environ(), buildVersion())
}
