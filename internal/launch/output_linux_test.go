package launch

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pieces is a reader that gives what it holds in given pieces.
type pieces [][]byte

func (p *pieces) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	if (*p)[0] = (*p)[0][n:]; len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	return n, nil
}

// writes records each write.
type writes []string

func (w *writes) Write(b []byte) (int, error) { *w = append(*w, string(b)); return len(b), nil }

func TestCopyLines(t *testing.T) {
	long := strings.Repeat("y", 100_000)
	for _, c := range []struct {
		in    []string
		label string
		want  []string
	}{
		{nil, "", nil},
		{[]string{"a\nb\n"}, "", []string{"a\nb\n"}},
		{[]string{"a", "b\nc"}, "", []string{"ab\n", "c\n"}},
		{[]string{"a\nb\nc", "d"}, "7: ", []string{"7: a\n7: b\n", "7: cd\n"}},
		{[]string{"\n", "\n\n"}, "7: ", []string{"7: \n", "7: \n7: \n"}},
		{[]string{long, "z\nq"}, "1: ", []string{"1: " + long + "z\n", "1: q\n"}},
	} {
		var in pieces
		for _, s := range c.in {
			in = append(in, []byte(s))
		}
		var out writes
		copyLines([]tap{{sink{new(outlet), &out}, c.label}}, &in)
		require.Equal(t, c.want, []string(out))
	}
}

func TestCopyLinesBreaksEndlessLines(t *testing.T) {
	var out bytes.Buffer
	copyLines([]tap{{to: sink{new(outlet), &out}}}, io.LimitReader(endless{}, 2*MaxOutputLine+100))
	require.Equal(t, 3, bytes.Count(out.Bytes(), []byte("\n")))
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte("x"), len(b))), nil }

func TestOutputOfRanks(t *testing.T) {
	r := run(t, Spec{N: 2}, "print")
	require.ElementsMatch(t, []string{"one 0", "partial 0", "one 1", "partial 1", ""}, strings.Split(r.out, "\n"))
	require.ElementsMatch(t, []string{"err 0", "err 1", ""}, strings.Split(r.err, "\n"))
	r = run(t, Spec{N: 11, Label: true}, "print")
	require.Contains(t, r.out, " 7: one 7\n")
	require.Contains(t, r.out, "10: partial 10\n")
	require.Contains(t, r.err, " 0: err 0\n")
}

func TestLinesStayWhole(t *testing.T) {
	r := run(t, Spec{N: 4}, "flood")
	next := map[int]int{}
	for sc := bufio.NewScanner(strings.NewReader(r.out)); sc.Scan(); {
		var rank, i int
		var rest string
		_, err := fmt.Sscanf(sc.Text()+"x", "%d:%d:%s", &rank, &i, &rest)
		require.NoError(t, err, sc.Text())
		require.Equal(t, next[rank], i, "order within a rank")
		require.Equal(t, strings.Repeat("x", i%300+1), rest)
		next[rank]++
	}
	require.Equal(t, map[int]int{0: 2000, 1: 2000, 2: 2000, 3: 2000}, next)
}

// slow is a reader's end that takes its time over the first write.
type slow struct {
	bytes.Buffer
	waited bool
}

func (s *slow) Write(b []byte) (int, error) {
	if !s.waited {
		s.waited = true
		time.Sleep(600 * time.Millisecond)
	}
	return s.Buffer.Write(b)
}

func TestASlowReaderLosesNothing(t *testing.T) {
	var out slow
	res, err := Run(t.Context(), Spec{N: 1, Grace: 100 * time.Millisecond, Argv: []string{program, "flood"}, Env: os.Environ(), Stdout: &out})
	require.NoError(t, err)
	require.Zero(t, res.Code)
	require.Equal(t, 2000, bytes.Count(out.Bytes(), []byte("\n")))
}

func TestStdin(t *testing.T) {
	for name, c := range map[string]struct {
		to   int
		want map[int]string
	}{
		"rank 0": {0, map[int]string{0: "some input\n"}},
		"rank 2": {2, map[int]string{2: "some input\n"}},
		"all":    {StdinAll, map[int]string{0: "some input\n", 1: "some input\n", 2: "some input\n"}},
		"none":   {StdinNone, nil},
	} {
		for _, kind := range []string{"pipe", "file", "none"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				s := Spec{N: 3, StdinTo: c.to}
				want := c.want
				switch kind {
				case "pipe":
					rd, wr, err := os.Pipe()
					require.NoError(t, err)
					defer rd.Close()
					_, err = wr.WriteString("some input\n")
					require.NoError(t, err)
					wr.Close()
					s.Stdin = rd
				case "file":
					f, err := os.CreateTemp(t.TempDir(), "in")
					require.NoError(t, err)
					defer f.Close()
					_, err = f.WriteString("some input\n")
					require.NoError(t, err)
					_, err = f.Seek(0, 0)
					require.NoError(t, err)
					s.Stdin = f
				default:
					want = nil
				}
				r := run(t, s, "stdin")
				require.Zero(t, r.Code, r.err)
				for rank := range 3 {
					require.Contains(t, r.out, fmt.Sprintf("%d read %q\n", rank, want[rank]))
				}
			})
		}
	}
}

// TestInputThatNobodyReads: a rank that ends without reading must not keep the job.
func TestInputThatNobodyReads(t *testing.T) {
	rd, wr, err := os.Pipe()
	require.NoError(t, err)
	defer rd.Close()
	defer wr.Close()
	for _, to := range []int{0, StdinAll} {
		r := run(t, Spec{N: 2, Stdin: rd, StdinTo: to, Grace: time.Minute}, "exit", "0", "0")
		require.Zero(t, r.Code)
		require.Less(t, r.took, 30*time.Second, "the reader was waited for, or the grace")
	}
}

// TestInputOfWhoWaits: a rank that reads nothing, as it waits for another one that reads, does not keep the input from that.
func TestInputOfWhoWaits(t *testing.T) {
	const size = 8 << 20
	in, err := os.Create(t.TempDir() + "/in")
	require.NoError(t, err)
	defer in.Close()
	require.NoError(t, in.Truncate(size))
	for _, hosts := range [][]Host{nil, {{Ranks: 1, Agent: agentCommand()}, {Ranks: 2}}, {{Ranks: 2}, {Ranks: 1, Agent: agentCommand()}}} {
		_, err = in.Seek(0, io.SeekStart)
		require.NoError(t, err)
		const script = `if [ $PGAS_RANK = 1 ]; then while [ ! -e "$0/0" ] || [ ! -e "$0/2" ]; do sleep 0.01; done; fi; wc -c; touch "$0/$PGAS_RANK"`
		r := run(t, Spec{N: 3, Hosts: hosts, Stdin: in, StdinTo: StdinAll, Timeout: 20 * time.Second, Argv: []string{"sh", "-c", script, t.TempDir()}})
		require.Zero(t, r.Code, r.err)
		require.Equal(t, 3, strings.Count(r.out, strconv.Itoa(size)), r.out)
	}
}

// TestOutputThatIsLost: a job whose output does not fit anywhere says so; one that nobody listens to any more does not.
func TestOutputThatIsLost(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	res, err := Run(t.Context(), Spec{N: 2, Argv: []string{"echo", "x"}, Stdout: full})
	require.ErrorContains(t, err, "the ranks' output is not complete: write /dev/full: no space left on device")
	require.Zero(t, res.Code, "the ranks did their part")
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	require.NoError(t, in.Close())
	_, err = Run(t.Context(), Spec{N: 2, Argv: []string{"echo", "x"}, Stdout: out})
	require.NoError(t, err)
}
