package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// judge runs every rule over one file of a package and returns what was found.
func judge(t *testing.T, pkg, name, text string) []Finding {
	t.Helper()
	p := newPackage(pkg, "")
	require.NoError(t, p.add(name, []byte(text)))
	p.resolve()
	return Check("gopgas", []*Package{p})
}

// cases are bad snippets, each of which exactly one rule objects to. In body, everything is the inside of a
// function with a context ctx, a channel ch and a number n; in decl it is the file after the package clause.
var cases = []struct {
	rule, pkg  string
	body, decl string
}{
	{rule: "clock", pkg: "eager", decl: `import "time"; var _ = time.Now`},
	{rule: "clock", pkg: "internal/proto", decl: `import clk "time"; func f() { clk.Sleep(1) }`},
	{rule: "clock", pkg: "regmgr", decl: `import "context"; func f(c context.Context) { context.WithTimeout(c, 1) }`},
	{rule: "env", pkg: "transport/tcp", decl: `import "os"; func f() string { return os.Getenv("HOME") }`},
	{rule: "env", pkg: "pgas", decl: `import "os"; func f() []string { return os.Environ() }`},
	{rule: "env", pkg: "bootstrap", decl: `import "golang.org/x/sys/unix"; func f() { unix.Getenv("PMI_FD") }`},
	{rule: "print", pkg: "window", decl: `import _ "log"`},
	{rule: "print", pkg: "window", decl: `import _ "log/slog"`},
	{rule: "print", pkg: "internal/launch", decl: `import "fmt"; func f() { fmt.Println() }`},
	{rule: "print", pkg: "transport/verbs", decl: `import "os"; func f() { os.Stderr.WriteString("x") }`},
	{rule: "print", pkg: "eager", body: `println(n)`},

	{rule: "wait", pkg: "internal/proto", body: `go func() {}()`},
	{rule: "wait", pkg: "transport/sim", body: `go func() {}()`},
	{rule: "wait", pkg: "sync", body: `<-ch`},
	{rule: "wait", pkg: "sync", body: `ch <- n`},
	{rule: "wait", pkg: "sync", body: `for range ch {}`},
	{rule: "wait", pkg: "sync", body: `select { case <-ch: case <-ctx.Done(): }`},
	{rule: "wait", pkg: "sync", body: `select { case ch <- <-ch: default: }`},
	{rule: "wait", pkg: "eager", decl: `import "sync"; type t struct { c sync.Cond }`},
	{rule: "wait", pkg: "eager", decl: `import "sync"; func f() { var w sync.WaitGroup; _ = w }`},
	{rule: "wait", pkg: "regmgr", decl: `import "context"; func f(c context.Context) { context.AfterFunc(c, nil) }`},

	{rule: "init", pkg: "transport/shm", decl: `func init() {}`},
	{rule: "var", pkg: "transport/shm", decl: `var count int`},
	{rule: "var", pkg: "transport/shm", decl: `var registry = map[string]int{}; func f() { registry["a"] = 1 }`},
	{rule: "var", pkg: "transport/shm", decl: `var table = [2]int{1, 2}; func f() { table[0]++ }`},
	{rule: "var", pkg: "transport/shm", decl: `var table = [2]int{1, 2}; func f() *int { return &table[0] }`},
	{rule: "var", pkg: "transport/shm", decl: `var table = map[int]int{1: 2}; func f() { delete(table, 1) }`},
	{rule: "var", pkg: "transport/shm", decl: `var table = []int{1}; func f() { for table[0] = range 3 {} }`},
	{rule: "var", pkg: "transport/shm", decl: `import "errors"; var errA = errors.New("a"); func f() { errA = nil }`},
	{rule: "var", pkg: "transport/shm", decl: `var errs []error`},
	{rule: "var", pkg: "transport/shm", decl: `var buf = make([]byte, 8)`},
	{rule: "var", pkg: "internal/cost", decl: `import "sync"; var pool = sync.Pool{}`},
	{rule: "var", pkg: "internal/cost", decl: `import "sync/atomic"; var words = [4]atomic.Uint64{}`},
	{rule: "var", pkg: "pgas", decl: `type world struct{}; var current *world`},

	{rule: "panic", pkg: "window", body: `panic("no")`},
	{rule: "panic", pkg: "window", body: "// it cannot happen\npanic(n)"},
	{rule: "panic", pkg: "examples/heat", body: "// bug:\npanic(n)"},

	{rule: "unsafe", pkg: "eager", decl: `import _ "unsafe"`},
	{rule: "cgo", pkg: "transport/verbs", decl: `import "C"`},
	{rule: "import", pkg: "firehose", decl: `import _ "gopgas/transport"`},
	{rule: "import", pkg: "window", decl: `import . "strings"`},
	{rule: "import", pkg: "pgas", decl: `import _ "github.com/urfave/cli/v2"`},
	{rule: "import", pkg: "pgas", decl: `import _ "github.com/stretchr/testify/require"`},
	{rule: "import", pkg: "pgas", decl: `import _ "golang.org/x/sync/errgroup"`},
	{rule: "room", pkg: "internal/util", decl: `import _ "gopgas/transport"`},

	{rule: "doc", pkg: "eager", decl: `type T struct{}`},
	{rule: "doc", pkg: "eager", decl: `const Max = 3`},
	{rule: "doc", pkg: "eager", decl: `func F() {}`},
	{rule: "doc", pkg: "eager", decl: "// T is.\ntype T[E any] struct{ e E }\n\nfunc (t *T[E]) Len() int { return 0 }"},
	{rule: "length", pkg: "eager", decl: strings.Repeat("\n", maxLines)},
	{rule: "lesson", pkg: "examples/heat", decl: strings.Repeat("\n", lessonLines)},
	{rule: "names", pkg: "eager", decl: manyNames(nameBudget + 1)},
	{rule: "names", pkg: "transport", decl: manyNames(51)},
}

func manyNames(n int) string {
	var b strings.Builder
	b.WriteString("// All of these.\nconst (\n")
	for i := range n {
		fmt.Fprintf(&b, "\tN%d = %d\n", i, i)
	}
	return b.String() + ")\n"
}

func text(body, decl string) string {
	if body != "" {
		decl = "import \"context\"\n\nfunc f(ctx context.Context, ch chan int, n int) {\n" + body + "\n}"
	}
	return "// Package x is a sample.\npackage x\n\n" + decl + "\n"
}

// TestRulesObject sees every rule object to its bad snippets, once and alone.
func TestRulesObject(t *testing.T) {
	for _, c := range cases {
		t.Run(c.rule+"/"+c.pkg, func(t *testing.T) {
			found := judge(t, c.pkg, c.pkg+"/x.go", text(c.body, c.decl))
			require.Len(t, found, 1, "%s%s", c.body, c.decl)
			require.Equal(t, c.rule, found[0].Rule, found[0].String())
			require.NotEmpty(t, found[0].Text)
		})
	}
}

// TestRulesAllow sees no rule object to what is allowed.
func TestRulesAllow(t *testing.T) {
	for _, c := range []struct{ pkg, name, body, decl string }{
		{"internal/sched", "a.go", "", `import "time"; func f() { go time.Sleep(1) }`},
		{"cmd/pgasrun", "main.go", "", `import ("log"; "os"); var _ = log.Print; func f() { go os.Getenv("A") }`},
		{"pgas", "config.go", "", `import "os"; func f() string { return os.Getenv("PGAS_TRANSPORT") }`},
		{"transport/tcp", "agent.go", `go func() { <-ch }(); select { case <-ch: case <-ctx.Done(): }`, ""},
		{"eager", "a.go", `select { case <-ch: default: }`, ""},
		{"eager", "a.go", `select { case n = <-ch: default: }; select { case ch <- n: default: }`, ""},
		{"eager", "a.go", `for range n {}; println := func(int) {}; println(n)`, ""},
		{"eager", "a.go", "", `import "time"; func f(d time.Duration) time.Duration { return 2*d + time.Second }`},
		{"eager", "a.go", "", `type clock struct{}; func (clock) Now() int { return 0 }; func f(time clock) int { return time.Now() }`},
		{"eager", "a.go", "", `import "errors"; var errFull = errors.New("full"); func f() error { return errFull }`},
		{"eager", "a.go", "", `var sizes = [...]int{8, 64, 512}; func f() int { sizes := []int{1}; sizes[0] = 2; return sizes[0] }`},
		{"eager", "a.go", "", `type kind uint8; var names = map[kind]string{kind(1): "put"}; func f() string { return names[1] }`},
		{"eager", "a.go", "", `type i interface{}; type t struct{}; var _ i = (*t)(nil)`},
		{"internal/mem", "a.go", "", `import "unsafe"; func f(p unsafe.Pointer) { panic("bounds") }`},
		{"window", "view.go", `panic("bounds")`, ""},
		{"window", "put.go", "// bug: the epoch was checked before\n// and cannot have changed\npanic(n)", ""},
		{"window", "put.go", "panic(n) // bug: unreachable", ""},
		{"transport/verbs/internal/ibv", "a.go", "", `import "C"; import _ "unsafe"`},
		{"cmd/pgasrun", "main.go", "", `import _ "github.com/urfave/cli/v2"`},
		{"transport/transporttest", "run.go", "", `import _ "github.com/stretchr/testify/require"`},
		{"examples/heat", "main.go", "", `import (_ "gopgas/pgas"; _ "gopgas/sync")`},
		{"eager", "a.go", "", "// Kinds.\nconst (\n\tA = 1\n\tB = 2\n)\n\ntype t struct{}\n\nfunc (t) Exported() {}\n\nfunc (t) String() string { return \"\" }"},
		{"transport", "a.go", "", manyNames(45)},
	} {
		found := judge(t, c.pkg, c.pkg+"/"+c.name, text(c.body, c.decl))
		require.Empty(t, found, "%s: %s%s", c.pkg, c.body, c.decl)
	}
}

// TestPackageComment covers what needs more than one file.
func TestPackageComment(t *testing.T) {
	load := func(pkg, name string, files map[string]string) []Finding {
		p := newPackage(pkg, name)
		for n, text := range files {
			require.NoError(t, p.add(pkg+"/"+n, []byte(text)))
		}
		p.resolve()
		return Check("gopgas", []*Package{p})
	}
	long := strings.Repeat("// Word.\n", minDocLines-1)

	found := load("eager", "eager", map[string]string{"a.go": "package eager\n"})
	require.Len(t, found, 1)
	require.Contains(t, found[0].Text, "no package comment")

	found = load("eager", "eager", map[string]string{"a.go": "// Package eager.\npackage eager\n", "b.go": "package eager\n"})
	require.Len(t, found, 1)
	require.Contains(t, found[0].Text, "no doc.go")

	found = load("eager", "eager", map[string]string{"doc.go": "// Package eager.\npackage eager\n", "b.go": "package eager\n"})
	require.Len(t, found, 1)
	require.Contains(t, found[0].Text, "2 lines, fewer than 21")

	require.Empty(t, load("eager", "eager", map[string]string{"doc.go": long + "package eager\n", "b.go": "package eager\n"}))
	require.Empty(t, load("cmd/pgasrun", "main", map[string]string{"a.go": "// Pgasrun.\npackage main\n", "b.go": "package main\n"}))

	found = load("examples/heat", "main", map[string]string{"a.go": "// Heat.\npackage main\n", "b.go": "package main\n"})
	require.Len(t, found, 1)
	require.Contains(t, found[0].Text, "an example is one file")

	// Twins declare the same names, which count once, and are both read.
	twin := "package eager\n\nconst on = true\n\nfunc wait(ch chan int) { <-ch }\n"
	found = load("eager", "eager", map[string]string{"doc.go": long + "package eager\n", "a_linux.go": twin, "a_other.go": twin})
	require.Len(t, found, 2)
	require.Equal(t, "eager/a_linux.go:5: channel receive: "+instead["wait"]+" (rule wait)", found[0].String())

	// Test files and C are held to their length only.
	require.Empty(t, load("eager", "eager", map[string]string{
		"doc.go": "// Package eager.\npackage eager\n", "a_test.go": "package eager\n\nfunc init() { panic(1) }\n",
	}))
	found = load("eager", "eager", map[string]string{
		"doc.go": "// Package eager.\npackage eager\n", "a_test.go": strings.Repeat("\n", maxLines+1), "b.c": strings.Repeat("\n", maxLines+1),
	})
	require.Len(t, found, 2)
}

func TestWords(t *testing.T) {
	for _, bad := range []string{
		"// TO" + "DO: later", "FIX" + "ME", "a XX" + "X b", "(HA" + "CK)",
		"see /wo" + "rk/shared", "/ro" + "ot/.bashrc", `"/wo` + `rk"`, "cd /ro" + "ot",
	} {
		require.Len(t, wordsIn("a.md", []byte("fine\n"+bad+"\n")), 1, bad)
	}
	for _, good := range []string{
		"mktemp a.XXXXXX", "todos and hacks", "internal/work/a", "https://example.org/work/a", "~/work", "/workers", "root", "a/root",
	} {
		require.Empty(t, wordsIn("a.md", []byte(good)), good)
	}
	require.Empty(t, wordsIn("go.sum", []byte("h1:XX"+"X/")))
	require.Empty(t, wordsIn("a.bin", []byte("TO"+"DO\x00")))
}
