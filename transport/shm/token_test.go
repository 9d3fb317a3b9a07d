package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

func sampleToken() token {
	return token{
		kind: kindMemfd, ways: WayProc | WaySocket, pid: 4711, fd: 9, dev: 1, ino: 77, bytes: 1 << 20, pidNS: 4026531836,
		id: 0x0123456789abcdef, sock: 0xfedcba9876543210, boot: [16]byte{1, 2, 3, 15: 16}, nonce: [16]byte{9, 8, 7, 15: 1},
	}
}

func TestTokenRoundTrip(t *testing.T) {
	want := sampleToken()
	got, err := parseToken(want.encode())
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Len(t, want.encode(), tokenLen)

	h := heapToken{group: 5, id: 1 << 40}
	gotHeap, err := parseHeapToken(h.encode())
	require.NoError(t, err)
	require.Equal(t, h, gotHeap)
	require.Len(t, h.encode(), heapTokenLen)
}

func TestTokenIsStrict(t *testing.T) {
	with := func(f func(b []byte)) transport.Token {
		b := sampleToken().encode()
		f(b)
		return b
	}
	tok := func(f func(*token)) transport.Token {
		s := sampleToken()
		f(&s)
		return s.encode()
	}
	for name, c := range map[string]struct {
		tok transport.Token
		err error
		say string
	}{
		"empty":         {nil, ErrToken, "0 bytes"},
		"short":         {sampleToken().encode()[:95], ErrToken, "95 bytes, want 96"},
		"long":          {append(sampleToken().encode(), 0), ErrToken, "97 bytes"},
		"version":       {with(func(b []byte) { b[0] = 2 }), ErrToken, "run the same build"},
		"kind 0":        {with(func(b []byte) { b[1] = 0 }), ErrToken, "kind 0"},
		"kind 4":        {with(func(b []byte) { b[1] = 4 }), ErrToken, "kind 4"},
		"no way":        {tok(func(s *token) { s.ways = 0 }), ErrToken, "ways"},
		"a maker":       {tok(func(s *token) { s.ways = WayProc | WayFile }), ErrToken, "ways"},
		"unknown way":   {tok(func(s *token) { s.ways = 0x44 }), ErrToken, "ways"},
		"reserved":      {with(func(b []byte) { b[3] = 1 }), ErrToken, "reserved"},
		"reserved word": {with(func(b []byte) { b[15] = 1 }), ErrToken, "reserved"},
		"pid 0":         {tok(func(s *token) { s.pid = 0 }), ErrToken, "process 0"},
		"pid":           {tok(func(s *token) { s.pid = 1 << 31 }), ErrToken, "process"},
		"fd":            {tok(func(s *token) { s.fd = 1 << 31 }), ErrToken, "descriptor"},
		"inode":         {tok(func(s *token) { s.ino = 0 }), ErrToken, "inode"},
		"no bytes":      {tok(func(s *token) { s.bytes = 0 }), ErrToken, "0 bytes of"},
		"huge":          {tok(func(s *token) { s.bytes = 1<<47 + 1 }), ErrToken, "bytes of"},
		"heap":          {heapToken{group: 1, id: 1}.encode(), transport.ErrUnsupported, "goroutine rank"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseToken(c.tok)
			require.ErrorIs(t, err, c.err)
			require.ErrorContains(t, err, c.say)
		})
	}
	_, err := parseHeapToken(sampleToken().encode())
	require.ErrorIs(t, err, transport.ErrUnsupported)
	_, err = parseHeapToken(heapToken{id: 0}.encode())
	require.ErrorIs(t, err, ErrToken)
}

// FuzzToken: what is accepted is exactly what encode makes of it, and nothing panics.
func FuzzToken(f *testing.F) {
	f.Add([]byte(sampleToken().encode()))
	f.Add([]byte(heapToken{group: 1, id: 2}.encode()))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if tok, err := parseToken(b); err == nil {
			require.Equal(t, b, []byte(tok.encode()))
		}
		if tok, err := parseHeapToken(b); err == nil {
			require.Equal(t, b, []byte(tok.encode()))
		}
	})
}

func TestParseWays(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Ways
	}{
		{"", 0},
		{"proc", WayProc},
		{"file,socket", WayFile | WaySocket},
		{" memfd , proc", WayMemfd | WayProc},
		{"memfd,file,proc,socket", makers | reachers},
	} {
		got, err := ParseWays(c.in)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		again, err := ParseWays(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
	for _, bad := range []string{"ptrace", "proc,", ",", "proc;socket"} {
		_, err := ParseWays(bad)
		require.ErrorContains(t, err, "memfd, file, proc, socket")
	}
	c := Config{Ways: WaySocket}.withDefaults()
	require.Equal(t, WaySocket|WayMemfd|WayFile, c.Ways)
}
