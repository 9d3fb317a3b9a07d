package main

import "strings"

// What several foreign flags are answered with.
const (
	ownHosts  = "hosts are named with -H a:2,b or --hostfile FILE"
	perHost   = "-n is the number of all ranks, --ppn that of each host; " + ownHosts
	ownWay    = "how hosts are reached is --launcher ssh, fork or srun, and --rsh 'ssh -p 2222' for a command that is called like ssh"
	allBind   = "the ranks are given processors in their order, with --bind-to core or --bind-to numa"
	allEnv    = "the ranks get all of this environment; -x VAR=VALUE sets one more variable"
	ownTuning = "settings are PGAS_ variables, which pgasrun info lists, such as -x PGAS_TRANSPORT=tcp"
	ownFiles  = "-o 'out.%r' writes each rank's output to a file of its own, -e its standard error; --tee shows it here too"
	needless  = "none is needed: "
)

// foreignFlags are flags of other launchers (MPICH's Hydra, Open MPI, Slurm, torchrun, upcxx-run) that pgasrun has by another name, or has not:
// their names without dashes, and what to do instead.
var foreignFlags = [...]struct{ names, instead string }{
	{"f w nodelist nodefile ssh-servers", ownHosts},
	{"launcher-exec bootstrap bootstrap-exec rmk rsh-args", ownWay},
	{"N nodes nnodes perhost npernode ntasks-per-node nproc-per-node nproc_per_node", perHost},
	{"ntasks c", "the number of ranks is -n"},
	{"localhost standalone", needless + "without -H or --hostfile pgasrun starts ranks on this machine"},
	{"mpi", needless + "pgasrun serves PMI-1 itself; --mpi=pmi2 is a flag of srun"},
	{"configfile app multi-prog", "all ranks run one program; a shell can choose: pgasrun -n 2 sh -c 'exec ./prog$PGAS_RANK'"},

	{"map-by rank-by rankfile rf bynode byslot m distribution cpus-per-task", allBind},
	{"cpu-bind numa-binding bind-to-core bind-to-socket bind-to-none", "processors are given with --bind-to core, numa or none"},
	{"oversubscribe nooversubscribe O overcommit", needless + "there may be more ranks than cores"},
	{"allow-run-as-root", needless + "pgasrun does not ask who you are"},
	{"display-map display-allocation show", "--dry-run prints what would run, --report-bindings the processors of each rank"},
	{"do-not-launch test-only", "--dry-run prints what would run, and runs nothing"},

	{"env genv envlist genvlist envall genvall export E", allEnv},
	{"envnone genvnone", "the ranks get all of this environment; env -i begins with an empty one"},
	{"mca gmca omca prtemca", ownTuning},
	{"iface", "the network is PGAS_DEVICE, such as -x PGAS_DEVICE=eth0"},
	{"heap shared-heap", needless + "the heap grows with what the program allocates"},
	{"D chdir wd workdir", "the working folder of the ranks is --wdir FOLDER"},

	{"t time", "the time limit is --timeout TIME, such as --timeout 30m"},
	{"backtrace get-stack-traces", "after --timeout TIME pgasrun says what every rank waits for, and Go ranks that wait for nothing print their " +
		"stacks; at QUIT (Ctrl-\\) it says what they wait for, at a second one all Go ranks print their stacks"},
	{"K kill-on-bad-exit", needless + "when a rank fails the others are ended; --no-kill lets them run on"},
	{"W wait", "--grace TIME is the time between SIGTERM and SIGKILL"},
	{"disable-auto-cleanup enable-recovery", "--no-kill lets the others run on when a rank fails"},
	{"max-restarts requeue", "pgasrun starts no rank anew; with --no-kill those that are left go on"},
	{"tv xterm pty", "a debugger goes round a rank with --wrap, such as --wrap 0:'dlv exec --'"},

	{"prepend-rank tag-output", "the rank before each line is --label, or -l"},
	{"prepend-pattern timestamp-output", "what stands before each line is --prefix, such as --prefix '%t %r: '"},
	{"outfile-pattern output-filename log-dir log_dir redirects", ownFiles},
	{"errfile-pattern", "-e 'err.%r' writes each rank's standard error to a file of its own"},
	{"merge-stderr-to-stdout", "write 2>&1 at the end; both streams are passed on in whole lines"},
	{"u unbuffered", needless + "each line is passed on when it is complete"},
	{"local-ranks-filter", "whose output is shown here is chosen with --only, such as --only 0,3"},
	{"s i input", "who reads the standard input is chosen with --stdin: a rank, all or none"},
	{"V", "pgasrun --version tells of pgasrun, pgasrun info of this machine; of a program built with Go, go version -m PROGRAM"},
}

// unknownFlag says what to do instead of a flag that pgasrun does not have; name has its dash.
func unknownFlag(name string) string {
	bare := strings.TrimLeft(name, "-")
	for _, f := range foreignFlags {
		for known := range strings.FieldsSeq(f.names) {
			if known == bare {
				return "there is no flag " + name + ": " + f.instead + "; the program's own flags belong after its name"
			}
		}
	}
	return "there is no flag " + name + "; the program's own flags belong after its name"
}
