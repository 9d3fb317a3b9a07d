package pgas

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/profile"
	"gopgas/internal/proto"
	"gopgas/regmgr"
	"gopgas/transport"
	"gopgas/transport/auto"
)

// Config says how a world is set up. The zero value of every field is its documented default.
type Config struct {
	// Transport is the NIC that carries operations on memory which is not mapped. Empty: soft on one node; between nodes
	// verbs where all ranks have an RDMA port, else tcp. On one node it is opened when it is first needed, for windows over slices that exist already. "shm" means
	// no NIC at all. One that is named must work here and reach all ranks; nothing else is taken in its place.
	Transport string
	// Device says which device or network the transport uses, in its own words: verbs takes a device and port
	// ("mlx5_0:1"), tcp an interface ("eth0") or an address of this machine. Ranks may differ. Empty: what the transport
	// finds.
	Device string
	// MaxPinned bounds all the memory that a rank registers with its NIC, in bytes. 0: what RLIMIT_MEMLOCK allows.
	MaxPinned int64
	// NoLocal makes the ranks of one node use the transport too, instead of mapping each other's memory.
	NoLocal bool
	// Nodes has the ranks behave as if they were on several machines, to try there what a program does on a cluster: rank r is on node
	// Nodes[r%len(Nodes)] of its machine. Ranks of different nodes do not map each other's memory, and use a NIC for several nodes. Equal on all ranks. Empty: each machine is a node.
	Nodes []int
	// Stats counts operations on mapped memory too. They are slower then: they are no longer inlined.
	Stats bool
	// Trace is a directory to which each rank writes a file of its puts and gets, for `pgasbench replay`. They all go through
	// the engine then, and are slower. Empty: none.
	Trace string
	// Timeline is a directory to which each rank writes what it did when, for a picture (see docs/seeing.md). All operations go
	// through the engine then, and are slower. Empty: none. `pgasrun --trace` sets it and merges the ranks' files.
	Timeline string
	// Profile marks what goroutines do in the library for Go's tools: "labels" in profiles, "regions" in execution traces, "both".
	// All operations go through the engine then, and are slower. Empty: nothing.
	Profile string
	// SoftLatency, at most 1 s, and SoftBandwidth (bytes per second, at least 64 KiB) slow the soft NIC down, to teach and to draw
	// figures. 0: they do not.
	SoftLatency   time.Duration
	SoftBandwidth int64
	// FailureTimeout is how long a rank on another node may be silent before it is called gone; equal on all ranks. 0: 5 s.
	// A rank that ends on this node is noticed at once, and one that is stopped is waited for.
	FailureTimeout time.Duration
	// Reg is what happens to the memory that large transfers over a NIC need registered, by the name of a policy of package
	// regmgr. Empty, or "auto", is the one that pays by what is known of cores, limit and costs (regmgr.Facts.Prefer): predictive where the
	// limit is small against the memory and a core is idle, else leavepinned.
	Reg string
	// RegLimit is the part of MaxPinned for transfers and for buckets of exposed memory, in bytes. 0: all but the library's buffers.
	// Where it is too small for any large transfer all are copied, and rank 0 says so at the start.
	RegLimit int64
	// RegThreshold is the size in bytes from which transfers over a NIC are registered instead of copied. 0: what the costs
	// of registered memory say where they are known, because of Calibration or under the policy predictive, else above 64 KiB.
	RegThreshold int64
	// Eager forces how transfers below RegThreshold travel over a NIC: inline, bounce (through a slot), bypass (from and to the
	// program's memory, registered at its first use), or auto: by measured costs, and by how often a buffer is used. Empty: auto.
	Eager string
	// EagerPercent is after what part of the uses that repay a registration a small buffer is registered, 1 to 100. 0: 25.
	EagerPercent int
	// Bulk forces how larger transfers travel whose memory is not registered: register (as Reg says), superpipe, copy, flat,
	// onthefly, pipelined, lease (as if the target's were not registered either), or auto: where Reg is leavepinned by costs, and by
	// how often the memory was used. Empty: auto.
	Bulk string
	// Leases is how many large transfers a rank takes in at once into memory of its own that is not registered, through workspace
	// that it leases to their origins (some hundred KiB each, registered while there are any and for as long as nobody needs the
	// room); what finds none goes by messages. Ranks may differ. 0: 4; negative: none.
	Leases int
	// Costs is a directory in which what transfers over a NIC cost is kept: a job there that finds what an earlier one has measured, on a machine of the same kind, measures
	// nothing, and chooses by it from its first transfer on. Close waits until what is being measured is kept. Made where the folder above it is there. Ranks may differ. Empty: each job measures.
	Costs string
	// Calibration says what registered memory costs on this machine: a file that `pgasrun info --calibrate --write` wrote, or
	// the name of a paper whose constants to take. Empty: measured where it must be known.
	Calibration string
	// IdleCores says which ranks have a helper under the policy predictive: "none", "conservative", "aggressive" or "auto" by
	// the cores on which no rank computes, or "always"; empty: "auto".
	IdleCores string
	// Predict is what the policy predictive predicts by: "window=2,age=0" (also empty) is the paper's predictor, which tells a call apart by
	// so many calls before it, 0 to 4, and lets so many longer periods in a row end a shorter one, 0: never; "periodicity=64"
	// is the one it was compared with, which looks whether the last so many calls, 8 to 1024, repeat.
	Predict string
	// Check is what is looked for while the program runs: "races" (docs/racecheck.md), or "races,fatal", with which rank 0's Close
	// fails if there were any, or "races,declared", with which uses of Local that are not declared are not looked for. All operations go through the engine then, and are slower. Empty: nothing.
	Check string
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
	envNodes     = "PGAS_NODES"
	envStats     = "PGAS_STATS"
	envDevice    = "PGAS_DEVICE"
	envTrace     = "PGAS_TRACE"
	envTimeline  = "PGAS_TIMELINE"
	envProfile   = "PGAS_PROFILE"
	envCheck     = "PGAS_CHECK"
	envStart     = "PGAS_START_TIMEOUT"
	envFailure   = "PGAS_FAILURE_TIMEOUT"
	envPinned    = "PGAS_MAX_PINNED"
	envReg       = "PGAS_REG"
	envRegLimit  = "PGAS_REG_LIMIT"
	envRegLeast  = "PGAS_REG_THRESHOLD"
	envEager     = "PGAS_EAGER"
	envPercent   = "PGAS_EAGER_PERCENT"
	envBulk      = "PGAS_BULK"
	envLeases    = "PGAS_LEASES"
	envKept      = "PGAS_COSTS"
	envCosts     = "PGAS_CALIBRATION"
	envIdle      = "PGAS_IDLE_CORES"
	envPredict   = "PGAS_PREDICT"
	envLatency   = "PGAS_SOFT_LATENCY"
	envBandwidth = "PGAS_SOFT_BANDWIDTH"
)

// Variables returns every variable that the library reads, with its value in environ.
func Variables(environ []string) []Variable {
	vars := []Variable{
		{Name: envTransport, Default: "auto", Meaning: "the NIC for memory that is not mapped: " + auto.Names() + "; shm: none; auto: " +
			auto.Choose(1, nil) + " on one node, between nodes verbs where all ranks have an RDMA port, else " + auto.Choose(2, nil)},
		{Name: envDevice, Meaning: "the transport's device; verbs: such as mlx5_0:1; tcp: an interface such as eth0, or an address of this machine"},
		{Name: envPinned, Default: "0", Meaning: "bytes that a rank may register with its NIC in all, such as 512M (K, M, G: 1024, its square, its cube, also below); 0: RLIMIT_MEMLOCK"},
		{Name: envLocal, Default: "on", Meaning: "off: ranks of one node use the transport instead of mapped memory"},
		{Name: envNodes, Meaning: "the node that each rank is taken to be on, in order of ranks and then from the first again, such as 0,0,1: to try on one machine what a " +
			"program does on several; ranks of different nodes do not map each other's memory"},
		{Name: envStats, Default: "0", Meaning: "1: count operations on mapped memory too (set by pgasrun --stats)"},
		{Name: envTrace, Meaning: "a directory: each rank writes a trace of its puts and gets, for pgasbench replay; made where the folder above it is there"},
		{Name: envTimeline, Meaning: "a directory: each rank writes what it did when (set by pgasrun --trace, which makes one file of them)"},
		{Name: envProfile, Meaning: "labels: of operation and target in pprof profiles; regions: in runtime/trace; or both"},
		{Name: envCheck, Meaning: "races: report accesses that nothing orders (docs/racecheck.md); races,fatal: fail the job then; races,declared: uses of Local only where they are declared"},
		{Name: envStart, Default: "60s", Meaning: "how long Init waits for the other ranks"},
		{Name: envFailure, Default: "5s", Meaning: "how long a rank may be silent before it is called gone; a death on this node is noticed at once"},
		{Name: envLatency, Default: "0", Meaning: "soft: every operation takes effect so much later, such as 5us; at most 1s"},
		{Name: envBandwidth, Default: "0", Meaning: "soft: bytes per second of each rank, such as 1.5G, at least 64K; 0: what the machine moves"},
		{Name: envReg, Default: preferred, Meaning: "the memory of large transfers: " + regmgr.Policies() + "; auto: predictive where little memory may be registered " +
			"and a core is idle, else leavepinned"},
		{Name: envRegLimit, Default: "0", Meaning: "the part of " + envPinned + " for transfers and for buckets of exposed memory, such as 64M; 0: all but buffers"},
		{Name: envRegLeast, Default: "0", Meaning: "bytes from which transfers are registered and not copied; 0: as " + envCosts + " or, under predictive, measured costs say, else above 65536"},
		{Name: envEager, Default: defaultEager, Meaning: "small transfers over a NIC: inline (bounce where too long for that), bounce, bypass, or auto: by measured costs and use"},
		{Name: envPercent, Default: "25", Meaning: "a small buffer is registered after so many percent of the uses that repay it, such as 50 or 100"},
		{Name: envLeases, Default: "0", Meaning: "large transfers taken in at once into memory that is not registered, each through some hundred KiB that are; 0: 4; -1: none, " +
			"they go by messages"},
		{Name: envBulk, Default: defaultBulk, Meaning: "large transfers over a NIC of memory that is not registered: " + proto.Bulks()},
		{Name: envKept, Meaning: "a directory: what transfers over a NIC cost on a machine of this kind is kept there by the job that measures it, and not measured by later ones; " +
			"made where the folder above it is there"},
		{Name: envCosts, Meaning: "costs of registered memory: a file of pgasrun info --calibrate --write, or: " + strings.Join(cost.Names(), ", ")},
		{Name: envIdle, Default: "auto", Meaning: "who has a registration helper under PGAS_REG=predictive where cores are short: none, conservative " +
			"(one for each idle core), aggressive (all, they share the idle cores), auto, always (whatever the cores)"},
		{Name: envPredict, Meaning: "what PGAS_REG=predictive predicts by, such as window=2,age=3: calls before one that tell it apart (0 to 4); so many longer periods in " +
			"a row end a shorter one (0: never); or periodicity=64: whether the last 8 to 1024 calls repeat"},
		{Name: "GOMAXPROCS", Default: fmt.Sprint(min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) + 1), Meaning: "threads that run Go code in a rank; default: one more than the cores there are, by affinity and quota"},
		{Name: "PMI_FD", Meaning: "the process manager's connection (set by pgasrun, mpiexec.hydra, srun --mpi=pmi2)"},
		{Name: "PMI_PORT", Meaning: "the same as an address"},
		{Name: "PMI_RANK", Meaning: "this rank (set by the process manager)"},
		{Name: "PMI_SIZE", Meaning: "the number of ranks (set by the process manager); any of these but rank 0 of 1 without PMI_FD or PMI_PORT: an error with the cure"},
		{Name: "PMI_ID", Meaning: "where there is PMI_PORT: this rank, as the process manager counts (set by it)"},
		{Name: "OMPI_COMM_WORLD_RANK", Meaning: "Open MPI's mpirun has started this: an error with the cure, since it serves no PMI-1"},
		{Name: "PMIX_RANK", Meaning: "another PMIx launcher has: likewise"},
		{Name: "SLURM_STEP_ID", Meaning: "with the next two, and no PMI: srun has started this without --mpi=pmi2, an error with the cure"},
		{Name: "SLURM_PROCID", Meaning: "the rank in Slurm's step"},
		{Name: "SLURM_STEP_NUM_TASKS", Meaning: "the ranks of Slurm's step; 1 is a program alone"},
		{Name: "PGAS_RANK", Meaning: "this rank, for scripts and programs that are not the library's (set by pgasrun; not read)"},
		{Name: "PGAS_SIZE", Meaning: "the number of ranks, likewise"},
		{Name: "PGAS_JOB", Meaning: "the job's name (set by pgasrun)"},
		{Name: "PGAS_CONTROL_FD", Meaning: "the launcher's channel for statistics and hang reports (set by pgasrun)"},
	}
	for i := range vars {
		vars[i].Value, _ = lookup(environ, vars[i].Name)
	}
	return vars
}

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
	if c.Transport, _ = lookup(environ, envTransport); c.Transport == "auto" {
		c.Transport = ""
	}
	c.Device, _ = lookup(environ, envDevice)
	switch v, _ := lookup(environ, envLocal); v {
	case "", "on":
	case "off":
		c.NoLocal = true
	default:
		return c, fmt.Errorf("%w: %s=%q: want on or off", ErrConfig, envLocal, v)
	}
	if err := c.nodesFrom(environ); err != nil {
		return c, err
	}
	switch v, _ := lookup(environ, envStats); v {
	case "", "0":
	case "1":
		c.Stats = true
	default:
		return c, fmt.Errorf("%w: %s=%q: want 0 or 1", ErrConfig, envStats, v)
	}
	c.Trace, _ = lookup(environ, envTrace)
	c.Timeline, _ = lookup(environ, envTimeline)
	c.Profile, _ = lookup(environ, envProfile)
	c.Check, _ = lookup(environ, envCheck)
	for name, to := range map[string]*time.Duration{envStart: &c.StartTimeout, envFailure: &c.FailureTimeout} {
		if v, _ := lookup(environ, name); v != "" {
			d, err := time.ParseDuration(v)
			if err != nil || d <= 0 {
				return c, fmt.Errorf("%w: %s=%q: want a time such as 90s", ErrConfig, name, v)
			}
			*to = d
		}
	}
	if v, ok := lookup(environ, envLatency); ok && v != "0" && v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return c, fmt.Errorf("%w: %s=%q: want a time such as 5us", ErrConfig, envLatency, v)
		}
		c.SoftLatency = d
	}
	if v, ok := lookup(environ, envBandwidth); ok && v != "" {
		n, err := mem.ParseBytes(v)
		if err != nil {
			return c, fmt.Errorf("%w: %s=%q: %w", ErrConfig, envBandwidth, v, err)
		}
		c.SoftBandwidth = n
	}
	if err := c.registrationFrom(environ); err != nil {
		return c, err
	}
	if err := c.protocolsFrom(environ); err != nil {
		return c, err
	}
	if v, ok := lookup(environ, envPinned); ok && v != "" {
		n, err := mem.ParseBytes(v)
		if err != nil {
			return c, fmt.Errorf("%w: %s=%q: %w", ErrConfig, envPinned, v, err)
		}
		c.MaxPinned = n
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

// validate fills in defaults and refuses what cannot work on any machine.
func (c *Config) validate() error {
	if c.StartTimeout == 0 {
		c.StartTimeout = time.Minute
	}
	if c.StartTimeout < 0 {
		return fmt.Errorf("%w: %s=%v: want a time such as 90s", ErrConfig, envStart, c.StartTimeout)
	}
	if err := c.validNodes(); err != nil {
		return err
	}
	if c.Transport != "" {
		if err := auto.Known(c.Transport); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrConfig, envTransport, err)
		}
	}
	if _, _, err := c.checks(); err != nil {
		return err
	}
	if c.FailureTimeout != 0 && c.FailureTimeout < leastFailureTimeout {
		return fmt.Errorf("%w: %s=%v: want %v or more: a busy machine is silent for that long", ErrConfig, envFailure, c.FailureTimeout, leastFailureTimeout)
	}
	if err := c.softBounds(); err != nil {
		return err
	}
	if _, err := c.registration(); err != nil {
		return err
	}
	if _, err := profile.Parse(c.Profile); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrConfig, envProfile, err)
	}
	if _, _, err := c.protocols(); err != nil {
		return err
	}
	if _, err := c.kept(); err != nil {
		return err
	}
	if c.NoLocal && c.Transport == "shm" {
		return fmt.Errorf("%w: %s=off leaves no way between the ranks of one node; set %s to one of: %s", ErrConfig, envLocal,
			envTransport, auto.Names())
	}
	return nil
}

// leastFailureTimeout is the shortest silence that can mean something.
const leastFailureTimeout = 100 * time.Millisecond

// nics are the settings of the NICs for ranks on that many nodes.
func (c *Config) nics(nodes int) auto.Config {
	return auto.Config{
		SoftLatency: c.SoftLatency, SoftBandwidth: c.SoftBandwidth, FailureTimeout: c.FailureTimeout, AcrossNodes: nodes > 1,
		MaxPinned: c.MaxPinned,
	}
}

// transportOn names the transport for ranks on that many nodes, on each of which fabrics were found.
func (c *Config) transportOn(nodes int, fabrics []string) string {
	if c.Transport != "" {
		return c.Transport
	}
	return auto.Choose(nodes, fabrics)
}

// chooseNIC returns the NIC for ranks on that many nodes, on each of which fabrics were found; nil means none. A NIC that the user named is tried at once, so
// that one which cannot work here is an error even where nothing would have needed it.
func (c *Config) chooseNIC(ctx context.Context, nodes int, fabrics []string) (transport.Provider, error) {
	name := c.transportOn(nodes, fabrics)
	if c.Transport != "" {
		err := auto.Fits(name, nodes)
		if err == nil && name != "shm" {
			err = auto.Probe(ctx, name, c.Device, c.nics(nodes))
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s=%s cannot be used here: %w; without %s the library takes what works (pgasrun info lists that)",
				ErrConfig, envTransport, name, err, envTransport)
		}
	}
	if name == "shm" {
		return nil, nil
	}
	return auto.Provider(name, c.nics(nodes))
}
