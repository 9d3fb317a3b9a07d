package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// every is one header of each kind, with all the fields that it has.
func every() (list []Header) {
	for k := Write; k <= lastKind; k++ {
		h := Header{Kind: k, Flags: AckWanted, Seq: 1<<40 + 1, Ack: 1<<41 + 2}
		p := shape[k]
		if p&(hasPayload|hasLen) != 0 {
			h.Len = 12345
		}
		if p&hasTarget != 0 {
			h.RAddr, h.RKey = 1<<60+3, 1<<61+4
		}
		if p&hasArg0 != 0 {
			h.Arg0 = 1<<62 + 5
		}
		if p&hasArg1 != 0 {
			h.Arg1 = 1<<63 + 6
		}
		if p&hasImm != 0 {
			h.Imm = 1<<31 + 7
		}
		if p&hasStatus != 0 {
			h.Status = 3
		}
		list = append(list, h)
		if p&hasPayload != 0 {
			h.Len = long
			list = append(list, h)
		}
	}
	return list
}

func TestHeadersSurvive(t *testing.T) {
	longest := 0
	for _, h := range every() {
		b := h.Append(nil)
		longest = max(longest, len(b))
		if h.Payload() > long {
			require.Len(t, b, MaxHeader)
		}
		require.Equal(t, b, h.Append([]byte{1, 2, 3})[3:])
		for n := range b { // W1: a part of it is asked for more of
			var part Header
			got, err := part.Decode(b[:n])
			require.NoError(t, err)
			require.Zero(t, got, "kind %d, %d of %d bytes", h.Kind, n, len(b))
		}
		var got Header
		n, err := got.Decode(append(b, 0xff))
		require.NoError(t, err)
		require.Equal(t, len(b), n)
		require.Equal(t, h, got)
		require.Equal(t, h.Kind <= Send, h.Kind.IsRequest())
	}
	require.Equal(t, MaxHeader, longest)
}

func TestHeadersRefused(t *testing.T) {
	write := Header{Kind: Write, Len: 8}
	imm := Header{Kind: Send, Imm: 1}
	far := Header{Kind: Data, Len: long + 1}
	for name, c := range map[string]struct {
		h     Header
		spoil func(b []byte)
		want  error
	}{
		"no kind":                 {write, func(b []byte) { b[0] = 0 }, errKind},
		"a kind of the future":    {write, func(b []byte) { b[0] = byte(lastKind) + 1 }, errKind},
		"a flag of the future":    {write, func(b []byte) { b[1] = 2 }, errReserved},
		"a status without use":    {write, func(b []byte) { b[2] = 1 }, errReserved},
		"a reserved byte":         {write, func(b []byte) { b[3] = 1 }, errReserved},
		"too long":                {write, func(b []byte) { b[7] = 0x41 }, errLength},
		"a length without use":    {Header{Kind: Ack}, func(b []byte) { b[4] = 1 }, errLength},
		"a wide immediate":        {imm, func(b []byte) { b[len(b)-1] = 1 }, errReserved},
		"a filling not of zeroes": {far, func(b []byte) { b[baseHeader] = 1 }, errReserved},
		"a byte before the data":  {far, func(b []byte) { b[len(b)-1] = 1 }, errReserved},
		"a length of an atomic":   {Header{Kind: FetchAdd}, func(b []byte) { b[4] = 8 }, errLength},
	} {
		b := c.h.Append(nil)
		c.spoil(b)
		var h Header
		n, err := h.Decode(b)
		require.ErrorIs(t, err, c.want, name)
		require.Zero(t, n, name)
	}
}

func TestDecodeAllocatesNothing(t *testing.T) {
	for _, h := range []Header{{Kind: CompareSwap}, {Kind: Data, Len: long + 1}} {
		b := h.Append(nil)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			var h Header
			_, _ = h.Decode(b)
			b = h.Append(b[:0])
		}))
	}
}

func hello() Hello {
	return Hello{Job: JobHash("job", 4), From: 1, To: 2, Caller: 3, Callee: 4, Nonce: [nonceBytes]byte{5}}
}

func TestHandshakeSurvives(t *testing.T) {
	h := hello()
	b := h.Append(nil)
	require.Len(t, b, HelloBytes)
	p, err := DecodePrefix(b)
	require.NoError(t, err)
	require.EqualValues(t, Version, p.Version)
	gotH, err := DecodeHello(b)
	require.NoError(t, err)
	require.Equal(t, h, gotH)

	c := Challenge{Verdict: Meet, Nonce: [nonceBytes]byte{1}, MAC: [macBytes]byte{2}}
	b = c.Append(nil)
	require.Len(t, b, ChallengeBytes)
	gotC, err := DecodeChallenge(b)
	require.NoError(t, err)
	require.Equal(t, c, gotC)

	pr := Proof{Last: 6, Window: 7, MAC: [macBytes]byte{8}}
	b = pr.Append(nil)
	require.Len(t, b, ProofBytes)
	gotP, err := DecodeProof(b)
	require.NoError(t, err)
	require.Equal(t, pr, gotP)

	w := Welcome{Verdict: OldAddress, Incarnation: 9, Window: 10, MAC: [macBytes]byte{11}}
	b = w.Append(nil)
	require.Len(t, b, WelcomeBytes)
	gotW, err := DecodeWelcome(b)
	require.NoError(t, err)
	require.Equal(t, w, gotW)
}

// TestMACs: every field, the secret and the speaker change the MAC.
func TestMACs(t *testing.T) {
	seen := map[[macBytes]byte]string{}
	add := func(what string, mac [macBytes]byte) {
		t.Helper()
		require.Empty(t, seen[mac], what)
		seen[mac] = what
	}
	base := Session{Secret: []byte("secret"), Hello: hello()}
	for what, change := range map[string]func(s *Session){
		"nothing": func(*Session) {}, "the secret": func(s *Session) { s.Secret = []byte("Secret") },
		"the job": func(s *Session) { s.Hello.Job = JobHash("job", 5) }, "the caller's rank": func(s *Session) { s.Hello.From++ },
		"the called rank": func(s *Session) { s.Hello.To++ }, "the caller's domain": func(s *Session) { s.Hello.Caller++ },
		"the called domain": func(s *Session) { s.Hello.Callee++ }, "the caller's nonce": func(s *Session) { s.Hello.Nonce[9]++ },
		"the called side's nonce": func(s *Session) { s.Nonce[9]++ },
	} {
		s := base
		change(&s)
		add(what+", challenge", s.ChallengeMAC())
		add(what+", proof", s.ProofMAC(Proof{}))
		add(what+", welcome", s.WelcomeMAC(Welcome{}))
	}
	add("last", base.ProofMAC(Proof{Last: 1}))
	add("window", base.ProofMAC(Proof{Window: 1}))
	add("verdict", base.WelcomeMAC(Welcome{Verdict: Meet}))
	add("incarnation", base.WelcomeMAC(Welcome{Incarnation: 1}))
	require.Equal(t, base.ProofMAC(Proof{}), base.ProofMAC(Proof{MAC: [macBytes]byte{1}}), "a MAC is not of itself")
	require.True(t, Same([macBytes]byte{1}, [macBytes]byte{1}))
	require.False(t, Same([macBytes]byte{1}, [macBytes]byte{31: 1}))
	require.NotEqual(t, JobHash("a", 1), JobHash("b", 1))
}

// FuzzHeader: what is accepted is written as the same bytes.
func FuzzHeader(f *testing.F) {
	for _, h := range every() {
		f.Add(h.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Header
		n, err := h.Decode(b)
		if n == 0 || err != nil {
			require.Zero(t, n)
			return
		}
		require.LessOrEqual(t, n, min(len(b), MaxHeader))
		require.Equal(t, b[:n], h.Append(nil))
		require.GreaterOrEqual(t, h.Payload(), 0)
		require.LessOrEqual(t, h.Payload(), MaxPayload)
	})
}

// FuzzHandshake feeds all decoders of the handshake.
func FuzzHandshake(f *testing.F) {
	h := hello()
	f.Add(h.Append(nil))
	f.Add((&Challenge{Verdict: OtherJob}).Append(nil))
	f.Add((&Proof{Last: 1, Window: 2}).Append(nil))
	f.Add((&Welcome{Incarnation: 1, Window: 2}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, prefix := DecodePrefix(b)
		same := prefix == nil && p.Version == Version
		if h, err := DecodeHello(b); err == nil && same {
			require.Equal(t, b, h.Append(nil))
		}
		if c, err := DecodeChallenge(b); err == nil && same {
			require.Equal(t, b, c.Append(nil))
		}
		if p, err := DecodeProof(b); err == nil {
			require.Equal(t, b, p.Append(nil))
		}
		if w, err := DecodeWelcome(b); err == nil {
			require.Equal(t, b, w.Append(nil))
		}
	})
}
