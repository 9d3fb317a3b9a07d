package card

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

func sameCard(t *testing.T, want, got Card) {
	require.Equal(t, want.Bytes, got.Bytes)
	require.Equal(t, want.RAddr, got.RAddr)
	require.Equal(t, want.RKey, got.RKey)
	require.Equal(t, want.CPU, got.CPU)
	require.Equal(t, want.Hosed, got.Hosed)
	require.Equal(t, want.Budget, got.Budget)
	require.Equal(t, want.Token == nil, got.Token == nil)
	require.True(t, bytes.Equal(want.Token, got.Token))
	require.True(t, bytes.Equal(want.Addr, got.Addr))
	require.Equal(t, want.Err == nil, got.Err == nil)
	if want.Err != nil {
		require.Equal(t, want.Err.Error(), got.Err.Error())
	}
}

func TestCardRoundTrip(t *testing.T) {
	for _, c := range []Card{
		{},
		{Bytes: math.MaxInt, RAddr: math.MaxUint64, RKey: 1 << 63, CPU: true},
		{Token: transport.Token{}, Hosed: math.MaxUint32, Budget: math.MaxUint64},
		{Token: transport.Token("a token"), Addr: []byte("an address"), Err: errors.New("no memory")},
		{Token: make(transport.Token, 65535), Addr: make([]byte, 300)},
		{Addr: []byte{0}},
		{Err: errors.New("")},
	} {
		got, err := Decode(c.Encode())
		require.NoError(t, err)
		sameCard(t, c, got)
	}
	long, err := Decode(Card{Err: errors.New(strings.Repeat("x", 1000))}.Encode())
	require.NoError(t, err)
	require.Len(t, long.Err.Error(), mostText)
}

// TestCardKeepsSentinels: whoever hears of another member's failure can match it like his own.
func TestCardKeepsSentinels(t *testing.T) {
	limit := &transport.LimitError{What: "memory", Found: "1", Needed: "2", Setting: "more"}
	for _, e := range []error{limit, transport.ErrUnsupported, fmt.Errorf("it: %w", transport.ErrClosed)} {
		c, err := Decode(Card{Err: e}.Encode())
		require.NoError(t, err)
		require.EqualError(t, c.Err, e.Error())
		for _, s := range []error{transport.ErrLimit, transport.ErrUnsupported, transport.ErrClosed} {
			require.Equal(t, errors.Is(e, s), errors.Is(c.Err, s), "%v is %v", e, s)
		}
	}
}

func TestMalformedCards(t *testing.T) {
	good := Card{Token: transport.Token("token"), Addr: []byte("addr")}.Encode()
	for n := range good {
		_, err := Decode(good[:n])
		require.ErrorIs(t, err, ErrMalformed, "%d of %d bytes", n, len(good))
	}
	negative := bytes.Clone(good)
	negative[8] = 0x80
	_, err := Decode(negative)
	require.ErrorIs(t, err, ErrMalformed)
}

// TestExchange: everybody gets everybody's card, and the same first failure; a member's own keeps its type.
func TestExchange(t *testing.T) {
	ranks := []int{4, 7, 9}
	own := &transport.LimitError{What: "memory", Found: "1", Needed: "2", Setting: "more"}
	given := []Card{{Bytes: 1}, {Err: own}, {Err: errors.New("later")}}
	gather := func(_ context.Context, mine []byte) (all [][]byte, err error) {
		for _, c := range given {
			all = append(all, c.Encode())
		}
		require.Contains(t, all, mine)
		return all, nil
	}
	for m, c := range given {
		cards, err := Exchange(context.Background(), gather, c)
		require.NoError(t, err)
		for i := range given {
			sameCard(t, given[i], cards[i])
		}
		failure := FirstFailure(cards, ranks, c.Err)
		switch m {
		case 0:
			require.ErrorIs(t, failure, transport.ErrLimit)
			require.ErrorContains(t, failure, "rank 7")
		default:
			require.Equal(t, c.Err, failure)
		}
	}
	require.NoError(t, FirstFailure([]Card{{}, {Bytes: 1}}, ranks, nil))

	broken := errors.New("broken")
	_, err := Exchange(context.Background(), func(context.Context, []byte) ([][]byte, error) { return nil, broken }, Card{})
	require.ErrorIs(t, err, broken)
	_, err = Exchange(context.Background(), func(context.Context, []byte) ([][]byte, error) { return [][]byte{nil}, nil }, Card{})
	require.ErrorIs(t, err, ErrMalformed)
	require.ErrorContains(t, err, "member 0")
}

func FuzzDecodeCard(f *testing.F) {
	f.Add(Card{}.Encode())
	f.Add(Card{Bytes: 4096, RAddr: 1, RKey: 2, CPU: true, Token: transport.Token("t"), Addr: []byte("a"), Err: errors.New("e")}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Decode(b)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		if c.Token != nil && len(c.Token) == 0 {
			c.Token = transport.Token{}
		}
		again, err := Decode(c.Encode())
		require.NoError(t, err)
		if c.Err != nil && len(c.Err.Error()) > mostText {
			return
		}
		sameCard(t, c, again)
	})
}
