package agent

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFrames(t *testing.T) {
	frames := []frame{
		{data, 7, []byte("a\nb")},
		{credit, 1<<32 - 1, []byte{1, 2, 3, 4}},
		{end, 0, nil},
		{shut, 3, nil},
		{remark, 0, []byte(`{"do":"finish"}`)},
		{data, 1, bytes.Repeat([]byte("x"), MaxData)},
	}
	var b []byte
	for _, f := range frames {
		b = f.append(b)
		require.Equal(t, byte('\n'), b[len(b)-1], "carriers that hand on whole lines hand it on")
	}
	rd := reader{from: bufio.NewReader(bytes.NewReader(b))}
	for _, want := range frames {
		got, err := rd.next()
		require.NoError(t, err)
		require.Equal(t, want.kind, got.kind)
		require.Equal(t, want.channel, got.channel)
		require.Equal(t, string(want.payload), string(got.payload))
	}
	_, err := rd.next()
	require.ErrorIs(t, err, io.EOF)

	whole := frame{data, 7, []byte("abc")}.append(nil)
	for cut := 1; cut < len(whole); cut++ {
		rd := reader{from: bufio.NewReader(bytes.NewReader(whole[:cut]))}
		_, err := rd.next()
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", cut)
	}
	for name, bad := range map[string]func([]byte){
		"kind 0":        func(b []byte) { b[0] = 0 },
		"kind 6":        func(b []byte) { b[0] = 6 },
		"zero":          func(b []byte) { b[2] = 1 },
		"long data":     func(b []byte) { b[10] = 1 },
		"empty data":    func(b []byte) { b[8] = 0 },
		"odd credit":    func(b []byte) { b[0] = byte(credit) },
		"end with data": func(b []byte) { b[0] = byte(end) },
		"no newline":    func(b []byte) { b[len(b)-1] = 'x' },
	} {
		b := bytes.Clone(whole)
		bad(b)
		rd := reader{from: bufio.NewReader(bytes.NewReader(b))}
		_, err := rd.next()
		require.ErrorIs(t, err, ErrMalformed, name)
	}
}

func TestNotes(t *testing.T) {
	for _, bad := range []string{
		``, `[]`, `{"do":"dance"}`, `{"do":"start"}`, `{"do":"start","plan":{"size":2,"first":1,"count":2,"argv":["eA=="]}}`,
		`{"do":"start","plan":{"size":2,"first":0,"count":2}}`, `{"do":"ended"}`, `{"do":"seen"}`, `{"do":"start","plan":{"size":1,"count":1,"argv":["?"]}}`,
	} {
		_, err := parseNote([]byte(bad))
		require.ErrorIs(t, err, ErrMalformed, bad)
	}
	n, err := parseNote([]byte(`{"do":"start","plan":{"size":2,"first":1,"count":1,"argv":["eA=="]},"stdin":[0]}`))
	require.NoError(t, err)
	require.Equal(t, []int{0}, n.Stdin)
}

// nowhere is a writer that ends a stream's frames.
type nowhere struct{ io.Writer }

func (nowhere) Close() error { return nil }

// FuzzStream: whatever comes, the stream ends with an error, holds no more than a window a channel, and channels give what was in valid
// frames for them, in order.
func FuzzStream(f *testing.F) {
	f.Add(frame{data, 1, []byte("hello")}.append(nil), []byte("x"))
	f.Add(frame{end, 1, nil}.append(frame{credit, 1, []byte{1, 0, 0, 0}}.append(nil)), []byte{})
	f.Add(frame{data, 1, []byte("hello")}.append(nil), []byte{})
	f.Add(frame{remark, 0, []byte(`{"do":"finish"}`)}.append(frame{shut, 2, nil}.append(nil)), []byte("\n"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		in := bytes.Join([][]byte{a, b}, nil)
		s := newStream(bufio.NewReader(bytes.NewReader(in)), nowhere{io.Discard})
		var open []*channel
		for id := range uint32(4) {
			open = append(open, s.open(id, nil))
		}
		err := s.run(func(n note) error { return nil })
		require.Error(t, err)
		for _, c := range open {
			require.LessOrEqual(t, len(c.unread), Window)
			require.LessOrEqual(t, c.credit, Window)
			rest, err := io.ReadAll(c)
			require.LessOrEqual(t, len(rest), Window)
			require.True(t, err == nil == c.theirEnd)
			_, err = c.Write([]byte("late"))
			require.Error(t, err)
		}
		s.close()
		<-s.written
	})
}

// pair is two streams that speak with each other.
func pair(t *testing.T, note1, note2 func(note) error) (a, b *stream) {
	t.Helper()
	fromA, toB := io.Pipe()
	fromB, toA := io.Pipe()
	a, b = newStream(bufio.NewReader(fromB), toB), newStream(bufio.NewReader(fromA), toA)
	done := make(chan error, 2)
	go func() { done <- a.run(note1) }()
	go func() { done <- b.run(note2) }()
	t.Cleanup(func() {
		a.close()
		b.close()
		<-done
		<-done
		fromA.Close()
		fromB.Close()
		<-a.written
		<-b.written
	})
	return a, b
}

func TestChannels(t *testing.T) {
	heard := make(chan note, 8)
	listen := func(n note) error { heard <- n; return nil }
	a, b := pair(t, listen, listen)
	shutA := make(chan bool, 1)
	one, uno := a.open(1, nil), b.open(1, nil)
	two, due := a.open(2, func() { shutA <- true }), b.open(2, nil)

	text := strings.Repeat("0123456789abcdef", Window/4) // four windows
	go func() {
		_, _ = io.WriteString(one, text)
		one.CloseWrite()
	}()
	// The first channel waits for its reader; the second and the notes go past it.
	_, err := io.WriteString(two, "past")
	require.NoError(t, err)
	got := make([]byte, 4)
	_, err = io.ReadFull(due, got)
	require.NoError(t, err)
	require.Equal(t, "past", string(got))
	b.tell(note{Do: look, Rank: 3})
	require.Equal(t, 3, (<-heard).Rank)
	all, err := io.ReadAll(uno)
	require.NoError(t, err)
	require.True(t, text == string(all))

	due.Close()
	require.True(t, <-shutA)
	_, err = io.WriteString(two, "nobody reads")
	require.ErrorContains(t, err, "broken pipe")
	_, err = two.Read(got)
	require.ErrorIs(t, err, io.EOF)

	blocked := make(chan error)
	go func() {
		_, err := io.WriteString(uno, text) // nobody reads that
		blocked <- err
	}()
	uno.CloseWrite()
	require.ErrorIs(t, <-blocked, io.ErrClosedPipe, "a close ends what waits for credit")
}
