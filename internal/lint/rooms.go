package lint

import (
	"path"
	"strings"
)

// room is a line of the import table.
type room struct {
	path    string // without the module's prefix; a pattern of path.Match
	imports string // rooms it may import; leaves stands for all leaves, anything for every room below
}

// Words of the table's second column that stand for more than one room.
const (
	leaves   = "leaves"
	anything = "anything"
)

// rooms is the house from the top down: an arrow may only point to a line further below. A new package gets a
// line here, in the change that creates it, together with its line in docs/architecture.md.
var rooms = []room{
	// What people start.
	{"cmd/pgasrun", "pgas internal/launch internal/agent internal/crew internal/dashboard internal/pmiserver internal/control internal/proto regmgr transport/auto transport leaves"},
	{"cmd/pgasbench", "cmd/pgasbench/transfers cmd/pgasbench/figures pgas window sync sync/coll internal/selector regmgr internal/replay internal/predict transport/auto transport leaves"},
	{"cmd/pgasbench/transfers", "cmd/pgasbench/figures cmd/pgasbench/pair pgas window sync sync/coll internal/proto eager internal/superpipe internal/selector regmgr " +
		"transport/auto transport/sim transport leaves"},
	{"cmd/pgasbench/pair", "internal/peers internal/proto transport/sim transport leaves"}, // two ranks in virtual time
	{"cmd/pgasbench/figures", "pgas window regmgr internal/replay internal/predict transport/auto transport leaves"},
	{"examples", ""}, // a test that runs them all as processes
	{"examples/*", "pgas pgas/grid pgas/rpc window sync sync/coll"}, // a learner's program sees what a user sees
	{"docs/tutorial/*", "pgas window sync sync/coll"},
	{"test/vm", "test/* leaves"}, // installs what it needs as other tests do
	{"test/npmtest", "test/*"},   // npm itself is a Debian package
	{"test/*", anything},

	// A world of ranks. pgas is the composition root: it alone sees every room of the runtime.
	{"pgas/pgastest", "pgas window sync internal/launch internal/control bootstrap transport/auto transport/sim transport/shm transport/transporttest transport leaves"},
	{"pgas/algo", "pgas window sync sync/coll"},  // what programs could write themselves
	{"pgas/hashmap", "pgas window sync"},         // as programs could
	{"pgas/grid", "pgas window sync transport"},  // as programs could; its errors are pgas's
	{"pgas/rpc", "window sync transport leaves"}, // as programs could, but for how it sleeps
	{"pgas", "internal/peers internal/atom window sync internal/racecheck internal/symheap internal/proto eager internal/superpipe internal/am " +
		"internal/bounce internal/selector regmgr firehose bootstrap internal/control transport/auto transport/shm transport leaves"},
	{"internal/launch", "internal/agent internal/crew internal/pmiserver internal/control internal/pmi leaves"},
	{"internal/agent", "internal/crew leaves"},                // ranks on other hosts
	{"internal/crew", "internal/control internal/pmi leaves"}, // ranks as processes of this one
	{"internal/dashboard", "internal/control"},                // what the launcher shows

	// The column of one-sided access, each on the one below.
	{"window", "internal/atom sync internal/racecheck internal/symheap internal/proto transport leaves"},
	{"sync/coll", "internal/atom sync internal/proto transport leaves"},
	{"sync", "internal/peers internal/atom internal/lock internal/agree internal/shape internal/racecheck internal/symheap internal/proto transport leaves"},
	{"internal/lock", "internal/atom internal/racecheck internal/proto transport leaves"},
	{"internal/agree", "internal/proto transport leaves"},
	{"internal/shape", ""}, // pure: where members lie
	{"internal/racecheck", "internal/atom internal/symheap internal/proto internal/touch transport leaves"},
	{"internal/symheap", "internal/proto transport leaves"},
	{"internal/proto", "internal/peers internal/atom internal/card internal/errand internal/flight internal/nic internal/prices internal/selector internal/hose eager internal/superpipe internal/spread internal/am regmgr firehose internal/touch transport leaves"},
	{"internal/hose", "internal/foresight regmgr firehose transport leaves"},
	{"internal/card", "transport leaves"},                                                                                     // what members tell each other of their memory
	{"internal/errand", "internal/atom leaves"},                                                                               // what others have this rank's CPU do
	{"internal/flight", "internal/peers internal/nic internal/am internal/superpipe internal/spread regmgr transport leaves"}, // large transfers of what is not registered
	{"internal/nic", "internal/inflight internal/peers internal/am internal/bounce transport leaves"},                         // connections, operations, waits
	{"internal/inflight", "internal/bounce transport leaves"},                                                                 // operations and what handles wait for
	{"internal/atom", leaves},              // what atomics do to an element
	{"internal/peers", "transport leaves"}, // who lives
	{"internal/prices", "internal/selector eager internal/superpipe regmgr transport leaves"}, // what transfers cost
	{"internal/selector", "internal/superpipe transport leaves"},
	{"eager", "internal/bounce regmgr transport leaves"},
	{"internal/superpipe", "internal/bounce internal/spread regmgr transport leaves"},
	{"internal/am", "transport leaves"},
	{"internal/bounce", "regmgr transport leaves"},
	{"internal/replay", "internal/foresight firehose regmgr internal/predict leaves"}, // policies over recorded traces, in virtual time
	{"regmgr", "firehose internal/predict transport leaves"},
	{"internal/foresight", "firehose leaves"}, // which uses of buckets are worth a prediction
	{"firehose", leaves},         // pure accounting: it does not know what a NIC is
	{"internal/predict", leaves}, // of regmgr's helper and of replays: it knows no NIC either

	// How ranks find each other.
	{"internal/pmiserver", "internal/pmi leaves"},
	{"bootstrap", "internal/pmi transport leaves"},
	{"internal/pmi", leaves},
	{"internal/control", leaves},

	// The machine. A provider sees the seam and, where it is made of software, what such NICs share.
	{"transport/auto", "transport/verbs transport/tcp transport/soft transport/sim transport/shm transport leaves"},
	{"transport/verbs", "transport/verbs/internal/ibv transport/verbs/internal/side transport leaves"},
	{"transport/verbs/internal/ibv", leaves},
	{"transport/verbs/internal/side", leaves}, // sockets and proofs: it knows no NIC
	{"transport/tcp", "internal/softnic transport leaves"},
	{"transport/soft", "internal/softnic transport/shm transport leaves"},
	{"transport/sim", "internal/softnic transport leaves"},
	{"transport/shm", "transport internal/touch leaves"},
	{"transport/transporttest", "transport internal/softnic leaves"},
	{"internal/softnic", "transport leaves"},
	{"transport", leaves},
	{"internal/spread", leaves}, // memory in many pieces
	{"internal/touch", leaves},  // page faults

	// Leaves import nothing of ours, but perhaps what checks invariants, and may be imported by every room that says so.
	{"internal/sched", "internal/invariants"},
	{"internal/callsite", ""},
	{"internal/seats", ""},
	{"internal/cost", ""},
	{"internal/ledger", ""}, // what was measured, for later programs
	{"internal/mem", ""},
	{"internal/wire", ""},
	{"internal/trace", ""},
	{"internal/timeline", ""},
	{"internal/profile", ""},
	{"internal/plot", ""},
	{"internal/paired", ""}, // what was measured by turns
	{"internal/invariants", ""},

	// The rules themselves.
	{"internal/lint", ""},
}

// firstLeaf is the room at which the leaves begin; they end before the rules themselves.
const firstLeaf, afterLeaves = "internal/sched", "internal/lint"

// outsiders are the modules we depend on, and the rooms whose programs (tests aside) may import them. Their
// reasons are in docs/adr/0001-dependencies.md.
var outsiders = []room{
	{"golang.org/x/sys", anything},
	{"github.com/cespare/xxhash/v2", anything},
	{"github.com/urfave/cli/v2", "cmd/*"},
	{"github.com/stretchr/testify", "transport/transporttest pgas/pgastest test/*"},
}

// find returns the index of the room that holds the package, and -1 where there is none.
func find(table []room, pkg string) int {
	for i, r := range table {
		if matches(r.path, pkg) {
			return i
		}
	}
	return -1
}

// mayImport reports whether table lets package from import package to.
func mayImport(table []room, from, to string) bool {
	i, j := find(table, from), find(table, to)
	if i < 0 || j <= i {
		return false // unknown, or an arrow that does not point down
	}
	for want := range strings.FieldsSeq(table[i].imports) {
		switch {
		case want == anything, want == leaves && isLeaf(table, j), want == table[j].path:
			return true
		}
	}
	return false
}

// isLeaf reports whether line i of table lies among the leaves.
func isLeaf(table []room, i int) bool {
	return i >= find(table, firstLeaf) && i < find(table, afterLeaves)
}

// matches reports whether pattern, a room's path, covers pkg.
func matches(pattern, pkg string) bool {
	ok, err := path.Match(pattern, pkg)
	return err == nil && ok
}
