package pgas

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Config says how a world is set up. The zero value of every field is its documented default.
type Config struct {
	// Transport is what carries operations between ranks that do not map each other's memory. Empty: none is
	// needed on one node, and what the machine has is taken elsewhere.
	Transport string
	// NoLocal makes the ranks of one node use the transport too, instead of mapping each other's memory.
	NoLocal bool
	// Stats counts operations on mapped memory too. They are slower then: they are no longer inlined.
	Stats bool
	// StartTimeout bounds Init. 0: 60 s.
	StartTimeout time.Duration
	// Environ is the environment in which the launcher's word is looked for. nil: the process's.
	Environ []string
}

// ErrConfig: a setting that cannot be used.
var ErrConfig = errors.New("bad configuration")

// Variable is an environment variable that the library reads.
type Variable struct{ Name, Value, Default, Meaning string }

// The variables, in the order in which `pgasrun info` lists them.
const (
	envTransport = "PGAS_TRANSPORT"
	envLocal     = "PGAS_LOCAL"
	envStats     = "PGAS_STATS"
	envStart     = "PGAS_START_TIMEOUT"
)

// Variables returns every variable that the library reads, with its value in environ.
func Variables(environ []string) []Variable {
	vars := []Variable{
		{Name: envTransport, Default: "shm", Meaning: "between ranks that do not map each other: " + strings.Join(transports(), ", ")},
		{Name: envLocal, Default: "on", Meaning: "off: ranks of one node use the transport instead of mapped memory"},
		{Name: envStats, Default: "0", Meaning: "1: count operations on mapped memory too (set by pgasrun --stats)"},
		{Name: envStart, Default: "60s", Meaning: "how long Init waits for the other ranks"},
		{Name: "GOMAXPROCS", Default: fmt.Sprint(runtime.NumCPU() + 1), Meaning: "threads that run Go code in a rank"},
		{Name: "PMI_FD", Meaning: "the process manager's connection (set by pgasrun, mpiexec.hydra, srun --mpi=pmi2)"},
		{Name: "PMI_PORT", Meaning: "the same as an address"},
		{Name: "PMI_RANK", Meaning: "this rank (set by the process manager)"},
		{Name: "PMI_SIZE", Meaning: "the number of ranks (set by the process manager)"},
		{Name: "PGAS_JOB", Meaning: "the job's name (set by pgasrun)"},
		{Name: "PGAS_CONTROL_FD", Meaning: "the launcher's channel for statistics and hang reports (set by pgasrun)"},
	}
	for i := range vars {
		vars[i].Value, _ = lookup(environ, vars[i].Name)
	}
	return vars
}

// transports are the names that PGAS_TRANSPORT takes.
func transports() []string { return []string{"shm"} }

func lookup(environ []string, name string) (string, bool) {
	for _, e := range slices.Backward(environ) {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// FromEnvironment returns the configuration that environ asks for; nil means the process's environment.
func FromEnvironment(environ []string) (Config, error) {
	if environ == nil {
		environ = os.Environ()
	}
	c := Config{Environ: environ}
	c.Transport, _ = lookup(environ, envTransport)
	switch v, _ := lookup(environ, envLocal); v {
	case "", "on":
	case "off":
		c.NoLocal = true
	default:
		return c, fmt.Errorf("%w: %s=%q: want on or off", ErrConfig, envLocal, v)
	}
	switch v, _ := lookup(environ, envStats); v {
	case "", "0":
	case "1":
		c.Stats = true
	default:
		return c, fmt.Errorf("%w: %s=%q: want 0 or 1", ErrConfig, envStats, v)
	}
	if v, ok := lookup(environ, envStart); ok {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return c, fmt.Errorf("%w: %s=%q: want a time such as 90s", ErrConfig, envStart, v)
		}
		c.StartTimeout = d
	}
	return c, c.validate()
}

// configOf completes a program's configuration; without one the environment decides.
func configOf(c *Config) (Config, error) {
	if c == nil {
		return FromEnvironment(nil)
	}
	cfg := *c
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	return cfg, cfg.validate()
}

func (c *Config) validate() error {
	if c.StartTimeout == 0 {
		c.StartTimeout = time.Minute
	}
	if c.Transport != "" && !slices.Contains(transports(), c.Transport) {
		return fmt.Errorf("%w: %s=%q is not a transport of this build; there are: %s", ErrConfig, envTransport, c.Transport,
			strings.Join(transports(), ", "))
	}
	if c.NoLocal && (c.Transport == "" || c.Transport == "shm") {
		return fmt.Errorf("%w: %s=off leaves no way between the ranks of one node; set %s to one of: %s", ErrConfig, envLocal,
			envTransport, strings.Join(transports(), ", "))
	}
	return nil
}
