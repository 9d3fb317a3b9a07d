package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/cost"
)

// Built once for all tests: pgasrun itself, the program of the launcher's tests that plays a rank, and two of real ranks.
var pgasrun, rank, traffic, heat string

func TestMain(m *testing.M) {
	heedSignals()
	dir, err := os.MkdirTemp("", "pgasrun-test-")
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	pgasrun, rank = filepath.Join(dir, "pgasrun"), filepath.Join(dir, "rank")
	traffic, heat = filepath.Join(dir, "traffic"), filepath.Join(dir, "heat")
	code := 1
	if build(dir, ".", "../../internal/launch/testdata/rank", "./testdata/traffic", "../../examples/heat") {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// heedSignals has what the tests start take signals that they themselves were told to ignore: HUP by nohup, INT and QUIT by a shell without job
// control that runs them in the background.
func heedSignals() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// build puts the programs into a folder, all at once: the tool reads the module once, and links on all cores.
func build(dir string, packages ...string) bool {
	b, err := exec.Command("go", append([]string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", dir}, packages...)...).CombinedOutput()
	os.Stderr.Write(b)
	return err == nil
}

// call runs pgasrun in this process with nothing on its standard input.
func call(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	var o, e bytes.Buffer
	code = run(append([]string{"pgasrun"}, args...), streams{in: null, out: &o, err: &e})
	return o.String(), e.String(), code
}

func TestWrongCommandLines(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), mode))
		return name
	}
	plain := write("plain", "hello", 0o644)
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.Mkdir(empty, 0o755))
	write("go.mod", "module m\n\ngo 1.26\n", 0o644)
	broken := filepath.Dir(write("broken/a.go", "package main\n\nfunc main() { no }\n", 0o644))
	library := filepath.Dir(write("library/a.go", "package library\n", 0o644))
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{nil, 2, "no program to run: wanted pgasrun -n 1 PROGRAM"},
		{[]string{"-n", "2", ""}, 2, "no program to run: wanted pgasrun -n 2 PROGRAM"},
		{[]string{"-n", "0", "true"}, 2, "-n 0: wanted a number of ranks, 1 to 4096"},
		{[]string{"-n", "x", "true"}, 2, "-n x: wanted a number"},
		{[]string{"-np", "-3", "true"}, 2, "-n -3: wanted a number"},
		{[]string{"-n", "5000", "true"}, 2, "-n 5000: wanted"},
		{[]string{"-n"}, 2, "the flag -n needs a value"},
		{[]string{"--frobnicate", "true"}, 2, "there is no flag -frobnicate"},
		{[]string{"-n", "2", "-rows", "7", "true"}, 2, "the program's own flags belong after its name"},
		{[]string{"-l=maybe", "true"}, 2, `-l is on or off and takes no value, found "maybe"`},
		{[]string{"--stdin", "2", "-n", "2", "true"}, 2, `--stdin 2: wanted a rank from 0 to 1, "all" or "none"`},
		{[]string{"--stdin", "x", "true"}, 2, "--stdin x"},
		{[]string{"-l", "--prefix", "x", "true"}, 2, "--label and --prefix: wanted one of them; --prefix '%r: ' is the label"},
		{[]string{"--prefix", "%q", "true"}, 2, `--prefix "%q": %q means nothing; there are %r rank`},
		{[]string{"-o", "out.%t", "true"}, 2, `-o "out.%t": a file's name cannot have the time`},
		{[]string{"-e", "%", "true"}, 2, `-e "%": wanted a letter after %`},
		{[]string{"--tee", "true"}, 2, "--tee without -o: wanted -o FILE"},
		{[]string{"-n", "2", "--only", "2", "true"}, 2, `--only "2": wanted numbers and ranges such as 0,2-3, from 0 to 1, or none`},
		{[]string{"--bind-to", "socket", "true"}, 2, "--bind-to socket: wanted none, core or numa"},
		{[]string{"--wrap", "gdb", "true"}, 2, "--wrap gdb: wanted RANKS:'COMMAND'"},
		{[]string{"--wrap", "0:'gdb", "true"}, 2, "--wrap 0:'gdb: wanted RANKS:'COMMAND'"},
		{[]string{"--wrap", "1:gdb", "true"}, 2, `--wrap 1:gdb: ranks "1": wanted numbers`},
		{[]string{"--wrap", "0:gdb", "--wrap", "all:strace", "true"}, 2, "--wrap: two commands for rank 0"},
		{[]string{"--wrap", "0:no-such-debugger --", "true"}, 127, `the command round rank 0: no such program: "no-such-debugger"`},
		{[]string{"-o", filepath.Join(dir, "none", "x"), "true"}, 1, "its folder must be there"},
		{[]string{"--serve", "nowhere", "true"}, 2, "--serve :nowhere: wanted :PORT or HOST:PORT with a port from 0 (any that is free) to 65535"},
		{[]string{"--serve", ":99999", "true"}, 2, "--serve :99999: wanted :PORT or HOST:PORT"},
		{[]string{"--serve", "192.0.2.1:0", "true"}, 2, "192.0.2.1 is no address of this machine; name one that is"},
		{[]string{"--trace", dir + "/none/f", "true"}, 2, "wanted a file in a folder that is there and that you may write to"},
		{[]string{"--trace", dir, "true"}, 2, "the file cannot be made"},
		{[]string{"--timeout", "soon", "true"}, 2, "--timeout soon: wanted a time such as 30s"},
		{[]string{"--timeout", "-1s", "true"}, 2, "--timeout -1s"},
		{[]string{"--timeout", "1e300", "true"}, 2, "--timeout 1e300"},
		{[]string{"--grace", "", "true"}, 2, "--grace : wanted a time"},
		{[]string{"-x", "=5", "true"}, 2, "-x =5: wanted VAR or VAR=VALUE"},
		{[]string{"-x", "NOT_SET_ANYWHERE", "true"}, 2, "-x NOT_SET_ANYWHERE: this variable is not set here"},
		{[]string{"--wdir", dir + "/none", "true"}, 2, "wanted a folder that is there"},
		{[]string{"--wdir", plain, "true"}, 2, "is not a folder"},
		{[]string{"--stats=xml", "true"}, 2, "--stats=xml: wanted --stats, --stats=json or --stats=json:FILE"},
		{[]string{"--stats=json:", "true"}, 2, "--stats=json:: wanted"},
		{[]string{"--stats=json:" + dir + "/none/f", "true"}, 2, "no such file or directory; wanted a file in a folder that is there"},
		{[]string{"4", "./heat"}, 2, `there is no program "4"; the number of ranks is given by -n: pgasrun -n 4 ./heat`},
		{[]string{"-n", "2", "4"}, 127, `"4" is in no folder of PATH`},
		{[]string{"no-such-program"}, 127, `"no-such-program" is in no folder of PATH; wanted the name of a program in PATH, or a path to one`},
		{[]string{"./no-such-program"}, 127, "there is no file ./no-such-program; wanted"},
		{[]string{"some/import/path"}, 127, "there is no file some/import/path"},
		{[]string{plain}, 126, "chmod +x " + plain},
		{[]string{empty}, 126, "is a folder without Go files"},
		{[]string{broken}, 2, "does not compile, see above; nothing was started"},
		{[]string{library}, 2, "not a program: wanted package main"},
		{[]string{"info", "more"}, 2, `info takes no arguments, found "more"`},
	} {
		out, errs, code := call(t, c.args...)
		require.Contains(t, errs, c.text, "%v", c.args)
		require.Regexp(t, `(?m)^pgasrun: `, errs)
		require.Equal(t, c.code, code, "%v", c.args)
		require.Empty(t, out)
	}
}

func TestFlagsEndAtTheProgram(t *testing.T) {
	out, errs, code := call(t, "-n", "2", "echo", "-n", "0", "--label", "--help")
	require.Equal(t, "0 --label --help0 --label --help", removeNewlines(out)) // echo takes its -n itself
	require.Empty(t, errs)
	require.Zero(t, code)
	out, _, code = call(t, "--", "echo", "--", "-x")
	require.Equal(t, "-- -x\n", out)
	require.Zero(t, code)
}

func removeNewlines(s string) string { return string(bytes.ReplaceAll([]byte(s), []byte("\n"), nil)) }

func TestFlagsReachTheJob(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PGAS_TEST_ONE", "1,2")
	out, errs, code := call(t, "-np", "2", "-l", "-wdir", dir, "-x", "PGAS_TEST_TWO=a,b", "-x", "PGAS_TEST_ONE",
		"sh", "-c", `echo $PWD $PGAS_RANK/$PGAS_SIZE $PGAS_TEST_ONE $PGAS_TEST_TWO`)
	require.Zero(t, code, errs)
	require.Contains(t, out, "0: "+dir+" 0/2 1,2 a,b\n")
	require.Contains(t, out, "1: "+dir+" 1/2 1,2 a,b\n")

	out, errs, code = call(t, "-x", "PGAS_TEST_TWO= a\t", "-x", "PGAS_TEST_ONE=  ", "sh", "-c", `echo "[$PGAS_TEST_TWO][$PGAS_TEST_ONE]"`)
	require.Zero(t, code, errs)
	require.Equal(t, "[ a\t][  ]\n", out, "blanks belong to a value")
	out, errs, code = call(t, "--wrap", `0:echo a\ `, "true")
	require.Zero(t, code, errs)
	require.Equal(t, "a  true\n", out, "a blank behind a backslash belongs to a word")

	_, errs, code = call(t, "-n", "2", rank, "exit", "1", "3")
	require.Equal(t, 3, code)
	require.Regexp(t, `^pgasrun: rank 1 on \S+ exited with 3 after \d\.\d\d s\n$`, errs)

	_, errs, code = call(t, "-n", "2", "--timeout", "0.2", "--grace", "100ms", rank, "stubborn")
	require.Equal(t, 124, code)
	require.Contains(t, errs, "hang report")

	out, errs, code = call(t, "-n", "3", "--no-kill", rank, "survive")
	require.Equal(t, 5, code, errs)
	require.Contains(t, out, "told: 1 exited with 5\n")

	_, errs, code = call(t, "-v", rank, "hello")
	require.Zero(t, code)
	require.Contains(t, errs, "rank 0 exited with 0 after")
}

func TestHelpAndInfo(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"-n", "4", "--help"}} {
		out, errs, code := call(t, args...)
		require.Zero(t, code)
		require.Empty(t, errs)
		require.Equal(t, helpText, out)
		for _, f := range newApp(streams{}).Flags {
			for _, name := range f.Names() {
				require.Contains(t, out, "-"+name, "a flag without a word of help")
			}
		}
	}
	out, errs, code := call(t, "info", "--help")
	require.Zero(t, code, errs)
	require.Equal(t, infoHelp, out)
	out, _, code = call(t, "info")
	require.Zero(t, code)
	for _, name := range []string{"cores", "large pages", "locked memory", "open files", "/dev/shm", "mappings", "memory of the control group", "PGAS_CONTROL_FD"} {
		require.Contains(t, out, "\n  "+name+" ")
	}
}

// TestInfoTriesTransports: each transport with what it is, or with the reason why it cannot be used.
func TestInfoTriesTransports(t *testing.T) {
	out, _, code := call(t, "info")
	require.Zero(t, code)
	for _, name := range []string{"shm", "soft", "tcp"} {
		require.Regexp(t, `(?m)^  `+name+` +available +\S`, out)
	}
	t.Setenv("PGAS_DEVICE", "nosuch0")
	t.Setenv("PGAS_FAILURE_TIMEOUT", "3s")
	out, _, code = call(t, "info")
	require.Zero(t, code)
	require.Regexp(t, `(?m)^  tcp +unusable +open tcp: device "nosuch0" is neither an address nor an interface`, out)
	require.Regexp(t, `(?m)^  soft +available `, out)
	require.Regexp(t, `(?m)^  PGAS_FAILURE_TIMEOUT +3s +default 5s `, out)
	require.Regexp(t, `(?m)^  PGAS_DEVICE +nosuch0 `, out)
	t.Setenv("PGAS_TRANSPORT", "pigeon")
	out, _, code = call(t, "info")
	require.Zero(t, code)
	require.Regexp(t, `(?m)^  settings +unusable +bad configuration: PGAS_TRANSPORT: .*"pigeon"`, out)
}

// TestCalibrate: the costs that are printed can be taken up again.
func TestCalibrate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "costs.json")
	out, errs, code := call(t, "info", "--calibrate", "--write", file)
	require.Zero(t, code, errs)
	for _, line := range []string{"costs of soft, measured in ", "  register ", "  deregister ", "residual", "\n  post ", "ns an operation", "  time slice ", "  context switch ", "t_cs of", "posts (operations at once", "GB/s", "\n  256 "} {
		require.Contains(t, out, line)
	}
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	m, err := cost.Read(f)
	require.NoError(t, err)
	require.Equal(t, "soft", m.Name)
	_, errs, code = call(t, "info", "--calibrate", "--nic", "hamster")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "hamster")
}

// TestCalibrateRefusesItsFileFirst: before the NIC is opened, which verbs cannot be here, and not after all is measured. What is in the file stays until
// there is something better, and there is none that was not there.
func TestCalibrateRefusesItsFileFirst(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{filepath.Join(dir, "none", "costs.json"), dir} {
		_, errs, code := call(t, "info", "--calibrate", "--nic", "verbs", "--write", file)
		require.Equal(t, 2, code)
		require.Contains(t, errs, "--write: open "+file)
		require.Contains(t, errs, "wanted a file in a folder that is there")
	}
	file := filepath.Join(dir, "costs.json")
	require.NoError(t, os.WriteFile(file, []byte("costs of before, which are longer than those that come\n"), 0o600))
	for _, fresh := range []bool{false, true} {
		f, err := openModel(file)
		require.NoError(t, err)
		require.Equal(t, fresh, f.fresh)
		f.discard()
		_, err = os.Stat(file)
		require.Equal(t, fresh, errors.Is(err, os.ErrNotExist))
		_ = os.Remove(file)
	}
}

func TestDryRun(t *testing.T) {
	out, errs, code := call(t, "-n", "2", "--dry-run", "-x", "A=b c", "--wdir", "/tmp", rank, "hello", "it's", "$HOME")
	require.Zero(t, code)
	require.Empty(t, errs)
	require.Contains(t, out, "# the program is "+rank+"\ncd /tmp\n")
	require.Regexp(t, `(?m)^PGAS_JOB=JOB PGAS_RANK=1 PGAS_SIZE=2 .*PMI_FD=3 PMI_RANK=1 .* 'A=b c' `+rank+` hello 'it'\\''s' '\$HOME'$`, out)
	out, _, code = call(t, "--dry-run", "../../internal/launch/testdata/rank", "x")
	require.Zero(t, code)
	require.Regexp(t, `(?m)^go -C \S+/internal/launch/testdata/rank build -o \$TMP/rank \.$`, out)
	require.Regexp(t, `(?m) \$TMP/rank x$`, out)
	_, errs, code = call(t, "--dry-run", "no-such-program")
	require.Equal(t, 127, code, errs)
}
