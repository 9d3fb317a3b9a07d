package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseHosts(t *testing.T) {
	for list, want := range map[string][]slots{
		"a":                    {{"a", 0}},
		"a:2,b":                {{"a", 2}, {"b", 0}},
		"u@a.example:3, b_c-1": {{"u@a.example", 3}, {"b_c-1", 0}},
		"[::1]:4,[fe80::1%lo]": {{"::1", 4}, {"fe80::1%lo", 0}},
		"a,b,a":                {{"a", 2}, {"b", 0}},
		"a:3,a:2":              {{"a", 5}},
	} {
		got, err := parseHosts(list)
		require.NoError(t, err, list)
		require.Equal(t, want, got, list)
	}
	for list, text := range map[string]string{
		"": `"" is not the name of a host`, "a,": `"" is not`, "a:": "wanted HOST or HOST:RANKS", "a:0": `"0" ranks on host a: wanted a number from 1`,
		"a:x": `"x" ranks`, "a:5000": `"5000" ranks`, "-oProxyCommand=x": "is not the name of a host", "::1": "has brackets", "a;b": "is not the name", "a b": "is not the name",
	} {
		_, err := parseHosts(list)
		require.ErrorContains(t, err, text, list)
	}
}

func TestReadHostfile(t *testing.T) {
	got, err := readHostfile(strings.NewReader("# a cluster\n\na:2\nb slots=3 # fat\n  c\n[::1]:4\nb:1\r\n"))
	require.NoError(t, err)
	require.Equal(t, []slots{{"a", 2}, {"b", 4}, {"c", 0}, {"::1", 4}}, got)
	got, err = readHostfile(strings.NewReader("\ufeff# as some editors write text\r\na\r\n"))
	require.NoError(t, err)
	require.Equal(t, []slots{{"a", 0}}, got)
	for text, want := range map[string]string{
		"a\n#" + strings.Repeat("x", 100_000): "line 2 is longer than 65535 bytes", "a\n\ufeffb": `line 2: "\ufeffb" is not the name of a host`,
		"": "there is no host in it", "# a\n": "there is no host in it", "a\nb cpus=2\n": `line 2: "b cpus=2": wanted HOST, HOST:RANKS or HOST slots=RANKS`,
		"a:2 slots=2": "line 1: ", "a slots=2 max_slots=4": "line 1: ", "a slots=": `line 1: "a slots="`, "a:": "line 1: ", "a:b": `line 1: "b" ranks on host a`,
		"-a": "line 1: ",
	} {
		_, err := readHostfile(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		hosts      string
		n, perHost int
		want       string // ranks of each host in turn; "-": an error
	}{
		{"a,b", 0, 0, "a1 b1"},
		{"a:32,b:32", 0, 0, "a32 b32"},
		{"a,b", 4, 0, "a2 b2"},
		{"a,b", 5, 0, "a3 b2"},
		{"a,b,c", 2, 0, "a1 b1"},
		{"a,b", 0, 3, "a3 b3"},
		{"a:1,b", 0, 3, "a1 b3"},
		{"a:2,b", 0, 0, "a2 b1"},
		{"a:2,b:2,c:2", 3, 0, "a2 b1"},
		{"a:2,b:2", 5, 0, "-"},
		{"a,b", 7, 3, "-"},
		{"a:4096,b", 0, 0, "-"},
	} {
		hosts, err := parseHosts(c.hosts)
		require.NoError(t, err)
		got, err := share(hosts, c.n, c.perHost)
		if c.want == "-" {
			require.Error(t, err, "%+v", c)
			continue
		}
		require.NoError(t, err, "%+v", c)
		var words []string
		for _, h := range got {
			words = append(words, h.host+strconv.Itoa(h.n))
		}
		require.Equal(t, c.want, strings.Join(words, " "), "%+v", c)
	}
}

func TestWrongHosts(t *testing.T) {
	for _, c := range []struct {
		args []string
		text string
	}{
		{[]string{"-H", "a", "--hostfile", "f", "true"}, "-H and --hostfile: wanted one of them"},
		{[]string{"--hostfile", "/no/file", "true"}, "--hostfile: open /no/file: no such file"},
		{[]string{"--hostfile", "/dev/null", "true"}, "--hostfile /dev/null: there is no host in it"},
		{[]string{"--ppn", "2", "true"}, "--ppn is about other hosts, and none is named: wanted -H a,b or --hostfile FILE"},
		{[]string{"-H", "a", "--ppn", "x", "true"}, "--ppn x: wanted a number of ranks for each host"},
		{[]string{"-H", "a:2", "-n", "3", "true"}, "-n 3: the hosts take 2 ranks; raise the numbers"},
		{[]string{"-H", "a", "--launcher", "rlogin", "true"}, "--launcher rlogin: wanted ssh, fork or srun"},
		{[]string{"-H", "a", "--launcher", "fork", "--rsh", "ssh", "true"}, "--rsh ssh: wanted a command that is called like ssh"},
		{[]string{"-H", "a", "--rsh", "'", "true"}, "--rsh ': wanted a command"},
		{[]string{"-H", "a:2", "--stdin", "2", "true"}, "--stdin 2: wanted a rank from 0 to 1"},
	} {
		out, errs, code := call(t, c.args...)
		require.Contains(t, errs, c.text, "%v", c.args)
		require.Equal(t, codeUsage, code, "%v", c.args)
		require.Empty(t, out)
	}
	t.Setenv("SLURM_JOB_NODELIST", "")
	_, errs, _ := call(t, "--launcher", "srun", "true")
	require.Contains(t, errs, "--launcher srun outside of a Slurm allocation")
}

func TestDryRunOnHosts(t *testing.T) {
	out, errs, code := call(t, "-H", "a:1,b:2", "--rsh", "ssh -p 2222", "--agent-path", "/opt/my pgas/pgasrun", "--dry-run", "./not-here", "-rows", "7")
	require.Zero(t, code, errs)
	require.Contains(t, out, "# host a, ranks 0 to 0, with the environment there and the PGAS_ variables of here, by\nssh -p 2222 -T -o BatchMode=yes ")
	require.Contains(t, out, ` a ''\''/opt/my pgas/pgasrun'\'' --agent'`)
	require.Contains(t, out, "# host b, ranks 1 to 2, ")
	require.Regexp(t, `# rank 2\nPGAS_JOB=JOB PGAS_RANK=2 PGAS_SIZE=3 .* MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 \./not-here -rows 7\n`, out)
}
