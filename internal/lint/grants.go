package lint

import (
	"path"
	"strings"
)

// grant is an exception: the rooms listed need not keep the rule.
type grant struct {
	rule   string
	rooms  string // patterns of path.Match; "room:file" narrows to files, again a pattern
	reason string
}

// The rooms at and above pgas, which the rules of the data path do not bind.
const (
	above    = "cmd/* cmd/pgasbench/figures cmd/pgasbench/transfers examples/* docs/tutorial/* test/* pgas pgas/pgastest"
	launcher = "internal/launch internal/agent internal/crew internal/pmiserver internal/dashboard"
	thisTest = "internal/lint"
)

// grants are all exceptions there are. Rules that are not named here have none.
var grants = []grant{
	{"clock", above, "above the simulator's seam"},
	{"clock", launcher, "launcher side: no rank waits here"},
	{"clock", "internal/control", "a socket between launcher and rank, beside the data path: deadlines are wall-clock times"},
	{"clock", "internal/pmi:client.go", "a socket between launcher and rank: deadlines are wall-clock times"},
	{"clock", "internal/sched", "it is the clock"},
	{"clock", "transport/verbs/internal/side:auth.go transport/verbs:connect.go", "sockets beside the data path: deadlines are wall-clock times"},
	{"clock", "transport/verbs:wait.go", "the limit of a sleep in the runtime's poller: deadlines are wall-clock times"},
	{"clock", "transport/tcp:keep.go", "the deadline of a handshake, over a socket: deadlines are wall-clock times"},
	{"clock", "transport/transporttest", "limits the time a provider under test may take"},

	{"env", "cmd/* examples/* docs/tutorial/* test/* pgas/pgastest", "programs of their own"},
	{"env", "pgas:config*.go", "the one reader of the environment of a rank"},
	{"env", launcher, "hands the environment on to ranks"},
	{"env", thisTest, "runs as a test"},

	{"print", above, "pgas ends a program with its error; the others talk to people"},

	{"wait", above, "above the simulator's seam"},
	{"wait", launcher, "launcher side: no rank waits here"},
	{"wait", "internal/sched", "it is the seam of waiting"},
	{"wait", "transport/transporttest", "plays several ranks against a provider"},
	{"wait", "transport/shm", "serves file descriptors to peers over a socket"},
	{"wait", "transport/soft", "its engine runs on a thread of its own"},
	{"wait", "transport/tcp", "its agent performs operations while the rank computes"},
	{"wait", "transport/verbs", "sleeps on the completion channel's descriptor, serves passive connects"},
	{"wait", "bootstrap", "runs before and after the data path, over sockets"},
	{"wait", "internal/control", "reads its socket beside the data path"},
	{"wait", "internal/pmi", "reads its socket before the data path exists"},

	{"init", "test/*", "runs as a test"},

	{"var", "cmd/* examples/* test/*", "a program's package has one world: its own"},
	{"var", "internal/dashboard:serve.go", "the files that go:embed puts into the binary"},
	{"var", "pgas:join.go", "a process joins its launcher's job once"},
	{"var", "pgas/pgastest", "keeps what the re-executed test binary was told"},

	{"panic", "internal/mem", "bounds, as a slice's"},
	{"panic", "internal/invariants", "it is where bugs panic"},
	{"panic", "internal/sched:sim_*.go", "unwinds a coroutine whose simulated world has ended, and hands a program's panic on"},
	{"env", "transport/transporttest:skip.go", "PGAS_REQUIRE turns a test's skip into a failure"},
	{"var", "internal/mem:caches_amd64.go internal/mem:copy_amd64.go", "what a process's caches hold, and what it has copied of late"},
	{"var", "internal/mem:skew_amd64.go", "what kind of processor this is"},
	{"var", "internal/mem:elem.go", "what is known of the program's types"},
	{"var", "internal/sched:futex_linux.go", "how many sleep counts by process, as GOMAXPROCS does: the ranks in it share that"},
	{"var", "transport/transporttest:suite.go", "a flag of the tests: the seed to replay"},

	{"panic", "window:view*.go", "View: bounds, as a slice's"},

	{"unsafe", "internal/mem", "memory by address is handled here"},
	{"unsafe", "internal/sched:futex_linux.go", "the address of a futex; a leaf cannot ask internal/mem"},
	{"unsafe", "internal/touch:serve_linux_amd64.go internal/touch:watch_linux_amd64.go", "a thread that the Go runtime does not know calls the kernel"},
	{"unsafe", "transport/soft:aside_linux.go", "the kernel says which processor it is"},
	{"unsafe", "transport/shm:peek_linux.go transport/soft:copy_linux.go", "lists that the kernel reads in a call that the Go runtime does not see"},
	{"unsafe", "transport/verbs/internal/ibv", "the border to C"},
	{"unsafe", "window pgas", "their typed edges: one element without a call"},

	{"cgo", "transport/verbs/internal/ibv", "the border to C"},
}

// granted reports whether rule is lifted for the package, or for this file of it.
func granted(rule, pkg, name string) bool {
	for _, g := range grants {
		if g.rule != rule {
			continue
		}
		for r := range strings.FieldsSeq(g.rooms) {
			r, pattern, narrowed := strings.Cut(r, ":")
			if !matches(r, pkg) {
				continue
			}
			if !narrowed || matches(pattern, path.Base(name)) {
				return true
			}
		}
	}
	return false
}

// nameBudget is the number of package-level exported names a package may have; budgets lists those with more.
const nameBudget = 40

// budgets are the packages whose vocabulary is a wire format: enumerations that a NIC's hardware dictates; and those with an
// atomic for each operation, which are functions, since only a function can ask more of an element type than its window does.
var budgets = map[string]int{
	"transport/verbs/internal/ibv": 80, // 40 of them are numbers of libibverbs' interface
	"transport":                    50, // 24 of them are the kinds, flags, statuses and rights of one operation
	"internal/proto":               59, // 23 of them enumerate atomics, paths, states and causes
	"window":                       46, // 18 of them are atomics
	"pgas":                         50, // 14 of them are atomics
	"internal/wire":                50, // 26 of them are the kinds, flags and verdicts of the format
}
