package proto

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

func sameCard(t *testing.T, want, got card) {
	require.Equal(t, want.bytes, got.bytes)
	require.Equal(t, want.raddr, got.raddr)
	require.Equal(t, want.rkey, got.rkey)
	require.Equal(t, want.cpu, got.cpu)
	require.Equal(t, want.hosed, got.hosed)
	require.Equal(t, want.budget, got.budget)
	require.Equal(t, want.token == nil, got.token == nil)
	require.True(t, bytes.Equal(want.token, got.token))
	require.True(t, bytes.Equal(want.addr, got.addr))
	require.Equal(t, want.err == nil, got.err == nil)
	if want.err != nil {
		require.Equal(t, want.err.Error(), got.err.Error())
	}
}

func TestCardRoundTrip(t *testing.T) {
	for _, c := range []card{
		{},
		{bytes: math.MaxInt, raddr: math.MaxUint64, rkey: 1 << 63, cpu: true},
		{token: transport.Token{}, hosed: math.MaxUint32, budget: math.MaxUint64},
		{token: transport.Token("a token"), addr: []byte("an address"), err: errors.New("no memory")},
		{token: make(transport.Token, 65535), addr: make([]byte, 300)},
		{addr: []byte{0}},
		{err: errors.New("")},
	} {
		got, err := decodeCard(c.encode())
		require.NoError(t, err)
		sameCard(t, c, got)
	}
	long, err := decodeCard(card{err: errors.New(strings.Repeat("x", 1000))}.encode())
	require.NoError(t, err)
	require.Len(t, long.err.Error(), 400)
}

// TestCardKeepsSentinels: whoever hears of another member's failure can match it like his own.
func TestCardKeepsSentinels(t *testing.T) {
	limit := &transport.LimitError{What: "memory", Found: "1", Needed: "2", Setting: "more"}
	for _, e := range []error{limit, transport.ErrUnsupported, fmt.Errorf("it: %w", transport.ErrClosed)} {
		c, err := decodeCard(card{err: e}.encode())
		require.NoError(t, err)
		require.EqualError(t, c.err, e.Error())
		for _, s := range []error{transport.ErrLimit, transport.ErrUnsupported, transport.ErrClosed} {
			require.Equal(t, errors.Is(e, s), errors.Is(c.err, s), "%v is %v", e, s)
		}
	}
}

func TestMalformedCards(t *testing.T) {
	good := card{token: transport.Token("token"), addr: []byte("addr")}.encode()
	for n := range good {
		_, err := decodeCard(good[:n])
		require.ErrorIs(t, err, errCard, "%d of %d bytes", n, len(good))
	}
	negative := bytes.Clone(good)
	negative[8] = 0x80
	_, err := decodeCard(negative)
	require.ErrorIs(t, err, errCard)
}

func FuzzDecodeCard(f *testing.F) {
	f.Add(card{}.encode())
	f.Add(card{bytes: 4096, raddr: 1, rkey: 2, cpu: true, token: transport.Token("t"), addr: []byte("a"), err: errors.New("e")}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeCard(b)
		if err != nil {
			require.ErrorIs(t, err, errCard)
			return
		}
		if c.token != nil && len(c.token) == 0 {
			c.token = transport.Token{}
		}
		again, err := decodeCard(c.encode())
		require.NoError(t, err)
		if c.err != nil && len(c.err.Error()) > 400 {
			return
		}
		sameCard(t, c, again)
	})
}
