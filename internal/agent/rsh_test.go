package agent

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCommands(t *testing.T) {
	require.Equal(t, []string{"/p", "--agent"}, Command(Fork, nil, "a", "/p"))
	ssh := Command(SSH, nil, "a", "/my bin/p")
	require.Equal(t, []string{"ssh", "-T", "-o", "BatchMode=yes"}, ssh[:4])
	require.Equal(t, []string{"a", "'/my bin/p' --agent"}, ssh[len(ssh)-2:])
	require.Equal(t, []string{"rsh", "-x", "a", "/p --agent"}, Command(SSH, []string{"rsh", "-x"}, "a", "/p"))
	own := Command(SSH, []string{"/bin/ssh", "-o", "BatchMode=no"}, "a", "/p")
	require.Equal(t, []string{"/bin/ssh", "-o", "BatchMode=no", "-T"}, own[:4], "what the user wrote comes first")
	require.Contains(t, Command(Srun, nil, "n1", "/p"), "--nodelist=n1")
}

func TestWhyAHostIsNotReached(t *testing.T) {
	ssh := Config{Name: "b", Version: "v1", Command: []string{"ssh", "-T", "b", "/p --agent"}}
	fork := Config{Name: "b", Version: "v1", Command: []string{"/p", "--agent"}}
	for _, c := range []struct {
		c    Config
		t    trouble
		code int
		said string
		want []string // found and cure
	}{
		{ssh, trouble{start: exec.ErrNotFound}, -1, "", []string{"there is no program ssh here", "openssh-client", "--rsh"}},
		{fork, trouble{start: exec.ErrNotFound}, -1, "", []string{"there is no program /p here", "--agent-path"}},
		{Config{Name: "b", Command: Command(Srun, nil, "b", "/p")}, trouble{start: exec.ErrNotFound}, -1, "", []string{"there is no program srun here", "--launcher"}},
		{ssh, trouble{start: context.Canceled}, -1, "", []string{"run ssh: "}},
		{ssh, trouble{late: 3 * time.Second}, -1, "", []string{"no agent answered within 3.0 s, it said nothing", "ssh -T b true"}},
		{ssh, trouble{protocol: 1, version: "v2"}, -1, "", []string{`the pgasrun there is "v2" with protocol 1, this one is "v1" with protocol 3`, "--agent-path"}},
		{ssh, trouble{noise: "moo"}, -1, "", []string{"instead of an agent's greeting, it said: moo"}},
		{ssh, trouble{ended: true}, 127, "sh: 1: /p: not found", []string{"no pgasrun at that path there, it said: sh: 1: /p: not found", "--agent-path"}},
		{ssh, trouble{ended: true}, 126, "Permission denied", []string{"cannot be run", "executable"}},
		{ssh, trouble{ended: true}, 255, "root@b: Permission denied (publickey).", []string{"refused this user's key, it said: root@b: Permission", "ssh-copy-id b"}},
		{ssh, trouble{ended: true}, 255, "Host key verification failed.", []string{"host key is not known", "ssh b"}},
		{ssh, trouble{ended: true}, 255, "ssh: Could not resolve hostname b: Name", []string{"no host of that name", "spelling"}},
		{ssh, trouble{ended: true}, 255, "connect to host b port 22: Connection refused", []string{"cannot be reached", "firewall"}},
		{ssh, trouble{ended: true, noise: "quota"}, 1, "", []string{"ssh ended with code 1 before an agent answered, it said: quota", "try by hand: ssh -T b true"}},
		{fork, trouble{ended: true}, 1, "", []string{"try by hand: /p --agent"}},
		{fork, trouble{ended: true}, -1, "", []string{"/p closed its output"}},
	} {
		got := explain(c.c, c.t, c.code, c.said).Error()
		for _, text := range c.want {
			require.Contains(t, got, text)
		}
	}
}

// TestDialGivesUp: each end of a command that is no agent is told, and a silent one is not waited for longer than the context allows.
func TestDialGivesUp(t *testing.T) {
	for script, c := range map[string]struct {
		wait time.Duration
		text string
	}{
		"echo no such user >&2; exit 5": {time.Minute, "reach host b: sh ended with code 5 before an agent answered, it said: no such user"},
		"exec /no/pgasrun":              {time.Minute, "there is no pgasrun at that path there"},
		"echo pgasrun-agent 1 v2; cat":  {time.Minute, `the pgasrun there is "v2"`},
		"echo pgasrun-agent 7 v1; cat":  {time.Minute, "with protocol 7"},
		"yes":                           {time.Minute, "65536 bytes came instead of an agent's greeting, it said: y y"},
		"sleep 1000":                    {50 * time.Millisecond, "no agent answered within 0."},
	} {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), c.wait)
		_, err := Dial(ctx, Config{Name: "b", Version: version, Command: []string{"sh", "-c", script}})
		cancel()
		require.ErrorContains(t, err, c.text, script)
		require.Less(t, time.Since(began), time.Minute, script)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Dial(ctx, Config{Name: "b", Command: []string{"sleep", "1000"}})
	require.ErrorIs(t, err, context.Canceled)
	_, err = Dial(t.Context(), Config{Name: "b", Command: []string{"/no/ssh"}})
	require.ErrorContains(t, err, "there is no program /no/ssh here")
}

func TestOneLine(t *testing.T) {
	require.Equal(t, "a b c", oneLine([]byte("a\r\n\tb \x1b c")))
	require.Equal(t, "a 2J caf\u00e9", oneLine([]byte("a\u009b2J caf\u00e9\u0090")))
	require.Len(t, oneLine([]byte(strings.Repeat("x", 1000))), 300+len(" …"))
	var last tail
	for _, l := range []string{"1", "2", "", "3", "4", "5"} {
		last.add([]byte(l))
	}
	require.Equal(t, "2 3 4 5", last.text())
	require.Equal(t, "5", last.last())
}
