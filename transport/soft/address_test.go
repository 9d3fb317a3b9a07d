package soft

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

func someAddress() address {
	return address{
		rank: 3, size: 7, pid: 4711, base: 0x7f0000001000, nonce: nonce{0xabcdef0000000002, 9},
		token: transport.Token(strings.Repeat("token", 19)),
	}
}

func TestAddress(t *testing.T) {
	a := someAddress()
	b := a.encode("job", []byte("secret"))
	require.LessOrEqual(t, len(b), recordBytes-recordHead)
	got, err := parseAddress(b, "job", []byte("secret"))
	require.NoError(t, err)
	require.Equal(t, a, got)
	for _, c := range []struct{ job, secret string }{{"jo", "secret"}, {"job", "secre"}, {"", "secret"}, {"job", ""}, {"jobs", "ecret"}} {
		_, err := parseAddress(b, c.job, []byte(c.secret))
		require.ErrorIs(t, err, errOtherJob)
	}
	for i := range b {
		bad := append([]byte(nil), b...)
		bad[i] ^= 1
		_, err := parseAddress(bad, "job", []byte("secret"))
		require.Error(t, err, "byte %d changed", i)
		_, err = parseAddress(b[:i], "job", []byte("secret"))
		require.Error(t, err, "cut to %d bytes", i)
	}
	// What the proof covers may still be nonsense, by a build that is not this one.
	for name, spoil := range map[string]func(a *address){
		"rank outside":   func(a *address) { a.rank = a.size },
		"no process":     func(a *address) { a.pid = 0 },
		"no nonce":       func(a *address) { a.nonce[0] = 0 },
		"an odd nonce":   func(a *address) { a.nonce[0]++ },
		"too long token": func(a *address) { a.token = make([]byte, maxToken+1) },
	} {
		a := someAddress()
		spoil(&a)
		_, err := parseAddress(a.encode("job", nil), "job", nil)
		require.Error(t, err, name)
	}
}

func FuzzAddress(f *testing.F) {
	f.Add(someAddress().encode("job", nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		// With the right proof, so that what lies behind it is reached.
		b = append(append([]byte(nil), b...), proof(b, "job", nil)...)
		a, err := parseAddress(b, "job", nil)
		if err != nil {
			return
		}
		require.Equal(t, b, a.encode("job", nil))
		require.Less(t, a.rank, a.size)
	})
}
