package pmi

import (
	"bufio"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for _, c := range []struct {
		line string
		want Message
		bad  string // part of the error
	}{
		{line: "cmd=init pmi_version=1 pmi_subversion=1\n", want: Msg("init", "pmi_version", "1", "pmi_subversion", "1")},
		{line: "cmd=barrier_out", want: Msg("barrier_out")},
		{line: "cmd=barrier_in \n", want: Msg("barrier_in")},
		{line: "cmd=get_result rc=0 value=a=b=c\n", want: Msg("get_result", "rc", "0", "value", "a=b=c")},
		{line: "cmd=get_result rc=-1 msg=no such key value=unknown", want: Msg("get_result", "rc", "-1", "msg", "no such key", "value", "unknown")},
		{line: "cmd=x v=\tq\xff", want: Msg("x", "v", "\tq\xff")},
		{line: "cmd=x v=", want: Msg("x", "v", "")},
		{line: "", bad: "empty line"},
		{line: "\n", bad: "empty line"},
		{line: "   \n", bad: "empty line"},
		{line: "init", bad: "wanted cmd=NAME"},
		{line: "cmd=", bad: "plain word"},
		{line: "cmd=a/b", bad: "plain word"},
		{line: "key=1 cmd=get", bad: "wanted cmd=NAME"},
		{line: "cmd=get key", bad: "not name=value"},
		{line: "cmd=get =1", bad: "not name=value"},
		{line: "mcmd=spawn", bad: "multi-line"},
		{line: "cmd=get\x00", bad: "byte 0x00"},
		{line: "cmd=get\nkey=1", bad: "byte 0x0a"},
		{line: "cmd=" + long, bad: "limit is 4096"},
	} {
		m, err := Parse([]byte(c.line))
		if c.bad != "" {
			require.ErrorIs(t, err, ErrMalformed, "%q", c.line)
			require.ErrorContains(t, err, c.bad, "%q", c.line)
			continue
		}
		require.NoError(t, err, "%q", c.line)
		require.Equal(t, c.want, m, "%q", c.line)
	}
}

func TestAppendRefusesWhatCannotBeReadBack(t *testing.T) {
	for _, m := range []Message{
		Msg(""), Msg("a b"), Msg("x", "", "1"), Msg("x", "k", "a b"), Msg("x", "k", "a\nb"), Msg("x", "k", strings.Repeat("v", MaxLine)),
	} {
		out, err := m.Append([]byte("keep"))
		require.Error(t, err)
		require.Equal(t, "keep", string(out))
	}
	out, err := Msg("put", "kvsname", "k", "value", "a=b").Append(nil)
	require.NoError(t, err)
	require.Equal(t, "cmd=put kvsname=k value=a=b\n", string(out))
}

func TestKeyAndValueLimits(t *testing.T) {
	require.NoError(t, CheckKey(strings.Repeat("k", MaxKey-1)))
	require.Error(t, CheckKey(strings.Repeat("k", MaxKey)))
	require.Error(t, CheckKey(""))
	require.Error(t, CheckKey("a b"))
	require.Error(t, CheckKey("a=b"))
	require.NoError(t, CheckValue(strings.Repeat("v", MaxValue-1)))
	require.Error(t, CheckValue(strings.Repeat("v", MaxValue)))
	require.Error(t, CheckValue(""))
	require.Equal(t, "rank_2_h", Word("rank 2\thas", 8))
}

func TestReadLineIsBounded(t *testing.T) {
	_, err := ReadLine(bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", 1<<20)), MaxLine))
	require.ErrorIs(t, err, ErrMalformed)
	_, err = ReadLine(bufio.NewReaderSize(strings.NewReader("cmd=in"), MaxLine))
	require.ErrorContains(t, err, "within a line")
}

// TestMalformedLines feeds 10 000 broken variants of true messages; Parse must neither panic nor return a message
// that cannot be written again.
func TestMalformedLines(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 10_000 {
		line := Mangle(rnd)
		m, err := Parse(line)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			refused++
			continue
		}
		requireRoundTrip(t, m)
	}
	require.Greater(t, refused, 3000, "the mangler makes mostly valid lines: the test shows little")
}

// Mangle returns a true message with a few bytes changed, cut out, doubled or put in.
func Mangle(rnd *rand.Rand) []byte {
	lines := []string{
		"cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_maxes", "cmd=get_my_kvsname", "cmd=barrier_in", "cmd=finalize",
		"cmd=put kvsname=job key=pgas-1-0-0 value=MTIzNDU2", "cmd=get kvsname=job key=PMI_process_mapping",
		"cmd=abort exitcode=7", "mcmd=spawn\nnprocs=2", "cmd=initack pmiid=3",
	}
	b := []byte(lines[rnd.IntN(len(lines))])
	for range 1 + rnd.IntN(4) {
		i := rnd.IntN(len(b) + 1)
		switch rnd.IntN(4) {
		case 0:
			b = append(b[:i:i], append([]byte{byte(rnd.IntN(256))}, b[i:]...)...)
		case 1:
			b = b[:i:i]
		case 2:
			b = append(b[:i:i], b...)
		default:
			if i < len(b) {
				b[i] = byte(rnd.IntN(256))
			}
		}
	}
	return b
}

func requireRoundTrip(t *testing.T, m Message) {
	t.Helper()
	line, err := m.Append(nil)
	if err != nil { // only blanks that Parse lets through and Append does not: tabs, and words of a msg
		return
	}
	again, err := Parse(line)
	require.NoError(t, err)
	require.Equal(t, m, again)
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=get_result rc=-1 msg=a b value=x=y", "mcmd=spawn\n", "cmd= =\x00", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := Parse(line)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		_, _ = m.RC()
		requireRoundTrip(t, m)
	})
}
