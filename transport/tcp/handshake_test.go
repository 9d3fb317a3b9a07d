package tcp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/wire"
	"gopgas/transport"
)

// quick is a configuration whose patience ends soon.
var quick = Config{FailureTimeout: 500 * time.Millisecond}

// TestRefusals connects ranks that do not belong together. Each refusal says why.
func TestRefusals(t *testing.T) {
	a := openRank(t, 0, 2, quick, transport.Config{})
	for name, c := range map[string]struct {
		other transport.Config
		spoil func(a *address)
		want  error
		gone  bool
	}{
		"another secret": {other: transport.Config{Secret: []byte("Secret")}, want: errOtherSecret},
		"another job":    {other: transport.Config{Job: "another"}, want: errOtherJob},
		"an old address": {spoil: func(a *address) { a.instance++ }, want: errOld, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := openRank(t, 1, 2, quick, c.other)
			to := b.me
			if c.spoil != nil {
				c.spoil(&to)
			}
			_, err := a.Connect(t.Context(), 1, to.append(nil))
			require.ErrorIs(t, err, c.want)
			var op *transport.OpError
			require.ErrorAs(t, err, &op)
			require.Equal(t, 1, op.Rank)
			require.Equal(t, c.gone, isGone(err))
			if c.spoil == nil { // and the other way round
				_, err = b.Connect(t.Context(), 0, a.Address())
				require.ErrorIs(t, err, c.want)
			}
			require.NoError(t, b.Close())
		})
	}
	t.Run("a job of another size", func(t *testing.T) {
		b := openRank(t, 1, 3, quick, transport.Config{})
		_, err := b.Connect(t.Context(), 0, a.Address())
		require.ErrorIs(t, err, errOtherJob)
	})
	t.Run("another rank", func(t *testing.T) {
		b := openRank(t, 1, 3, quick, transport.Config{})
		c := openRank(t, 2, 3, quick, transport.Config{})
		to := c.me
		to.rank = 0
		_, err := b.Connect(t.Context(), 0, to.append(nil))
		require.ErrorIs(t, err, errOtherRank)
	})
	b := openRank(t, 1, 2, quick, transport.Config{})
	a.serves(t, b)
}

func isGone(err error) bool { return errors.Is(err, transport.ErrPeerGone) }

// TestSecretDemanded: without a secret nothing is opened that others could reach.
func TestSecretDemanded(t *testing.T) {
	_, err := New(Config{}).Open(t.Context(), transport.Config{Rank: 0, Size: 2, Job: "x"})
	require.ErrorIs(t, err, errSecret)
	d, err := New(Config{}).Open(t.Context(), transport.Config{Rank: 0, Size: 1, Job: "x"})
	require.NoError(t, err)
	require.NoError(t, d.Close())
}

// TestWrongProof: who does not know the secret learns nothing more and is dropped.
func TestWrongProof(t *testing.T) {
	a := openRank(t, 0, 2, quick, transport.Config{})
	for name, c := range map[string]struct {
		before func(s *stranger, p *wire.Proof) // the MAC is made
		after  func(p *wire.Proof)
	}{
		"another secret":           {before: func(s *stranger, _ *wire.Proof) { s.s.Secret = []byte("guess") }},
		"another nonce":            {before: func(s *stranger, _ *wire.Proof) { s.s.Nonce[0]++ }},
		"a proof of another rank":  {before: func(s *stranger, _ *wire.Proof) { s.s.Hello.From = 0 }},
		"a proof for another rank": {before: func(s *stranger, _ *wire.Proof) { s.s.Hello.To = 1 }},
		"a window beyond reason":   {before: func(_ *stranger, p *wire.Proof) { p.Window = 1 << 31 }},
		"a window of no request":   {before: func(_ *stranger, p *wire.Proof) { p.Window = 0 }},
		"another incarnation":      {after: func(p *wire.Proof) { p.Last++ }},
		"another window":           {after: func(p *wire.Proof) { p.Window++ }},
		"no MAC":                   {after: func(p *wire.Proof) { p.MAC = [32]byte{} }},
	} {
		t.Run(name, func(t *testing.T) {
			s := knock(t, a)
			require.Equal(t, wire.Accepted, s.hello().Verdict)
			p := wire.Proof{Window: 64}
			if c.before != nil {
				c.before(s, &p)
			}
			p.MAC = s.s.ProofMAC(p)
			if c.after != nil {
				c.after(&p)
			}
			s.send(p.Append(nil))
			require.Empty(t, s.dropped())
		})
	}
	t.Run("the rank's own MAC", func(t *testing.T) {
		s := knock(t, a)
		p := wire.Proof{Window: 64, MAC: s.hello().MAC}
		s.send(p.Append(nil))
		require.Empty(t, s.dropped())
	})
	a.untouched(t, true)
}

// TestReplay sends what an honest rank has sent before.
func TestReplay(t *testing.T) {
	a := openRank(t, 0, 2, quick, transport.Config{})
	s := knock(t, a).enter()
	p := wire.Proof{Last: 1 << 20, Window: 64}
	p.MAC = s.s.ProofMAC(p)
	again := knock(t, a)
	again.s.Hello = s.s.Hello
	require.Equal(t, wire.Accepted, again.hello().Verdict)
	again.send(p.Append(nil))
	require.Empty(t, again.dropped())
}

// TestOtherVersion: a build with another wire format is refused from both sides with a clear word.
func TestOtherVersion(t *testing.T) {
	a := openRank(t, 0, 2, quick, transport.Config{})
	s := knock(t, a)
	hello := s.s.Hello.Append(nil)
	hello[8]++
	s.send(hello)
	buf := make([]byte, wire.ChallengeBytes)
	_, err := io.ReadFull(s, buf)
	require.NoError(t, err)
	c, err := wire.DecodeChallenge(buf)
	require.NoError(t, err)
	require.Equal(t, wire.Challenge{Verdict: wire.OtherFormat}, c)

	answer := (&wire.Challenge{}).Append(nil)
	answer[8]++
	_, err = a.Connect(t.Context(), 1, fakeRank(t, answer))
	require.ErrorContains(t, err, fmt.Sprintf("version %d of the wire format", wire.Version+1))
	require.ErrorContains(t, err, "same build")

	_, err = a.Connect(t.Context(), 1, fakeRank(t, (&wire.Challenge{Verdict: wire.OtherFormat}).Append(nil)))
	require.ErrorContains(t, err, "same build")
}

// fakeRank is a server that says the same to everybody, and its address as that of rank 1.
func fakeRank(t *testing.T, says []byte) []byte {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(says)
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return address{rank: 1, instance: 5, places: []netip.AddrPort{netip.MustParseAddrPort(l.Addr().String())}}.append(nil)
}

// TestStrangeServers connects to what is no rank, or says nothing.
func TestStrangeServers(t *testing.T) {
	a := openRank(t, 0, 2, quick, transport.Config{})
	_, err := a.Connect(t.Context(), 1, fakeRank(t, []byte("220 mail.example ESMTP ready, and many other words\r\n")))
	require.ErrorIs(t, err, errNotARank)
	start := time.Now()
	_, err = a.Connect(t.Context(), 1, fakeRank(t, nil))
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.Less(t, time.Since(start), 20*quick.FailureTimeout)
	var forged wire.Challenge // from one who does not know the secret
	_, err = a.Connect(t.Context(), 1, fakeRank(t, forged.Append(nil)))
	require.ErrorIs(t, err, errOtherSecret)
}

// TestTryFor: the tries of a call that is not answered share the failure timeout, and the last has more than half of it.
func TestTryFor(t *testing.T) {
	const whole = 8 * time.Second
	var tries []time.Duration
	for share, left := whole/triesLeast, whole; left > 0; share *= 2 {
		wait := tryFor(share, left, 1)
		tries, left = append(tries, wait), left-wait
	}
	require.Equal(t, []time.Duration{1 * time.Second, 2 * time.Second, 5 * time.Second}, tries)
	require.Equal(t, 2*time.Second, tryFor(6*time.Second, 8*time.Second, 4), "four places share a try")
	require.Positive(t, tryFor(time.Second, -time.Second, 3))
}

// TestUnheardCall: a call that the peer does not answer is made again, and one that nobody ever answers fails within the failure timeout
// with the last try's words.
func TestUnheardCall(t *testing.T) {
	cfg := Config{FailureTimeout: 2 * time.Second}
	a, b := openRank(t, 0, 2, cfg, transport.Config{}), openRank(t, 1, 2, cfg, transport.Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() { // the way to rank 1, on which the first call gets lost
		defer close(done)
		lost, err := l.Accept()
		if err != nil {
			return
		}
		defer lost.Close()
		near, err := l.Accept()
		if err != nil {
			return
		}
		defer near.Close()
		far, err := net.Dial("tcp", b.me.places[0].String())
		if err != nil {
			return
		}
		defer far.Close()
		go func() { _, _ = io.Copy(far, near) }()
		_, _ = io.Copy(near, far)
	}()
	to := b.me
	to.places = []netip.AddrPort{netip.MustParseAddrPort(l.Addr().String())}
	_, err = a.Connect(t.Context(), 1, to.append(nil))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, l.Close())
	<-done

	cfg.FailureTimeout = 200 * time.Millisecond
	c := openRank(t, 0, 2, cfg, transport.Config{})
	begun := time.Now()
	_, err = c.Connect(t.Context(), 1, fakeRank(t, nil))
	require.GreaterOrEqual(t, time.Since(begun), cfg.FailureTimeout)
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.ErrorContains(t, err, "no connection within 200ms (no answer within")
	require.ErrorContains(t, err, "i/o timeout")
}

// TestStrangersAndOwnCall: however many strangers call, this rank's own call to another one goes on, and ends as that one answers.
func TestStrangersAndOwnCall(t *testing.T) {
	a := openRank(t, 0, 2, Config{FailureTimeout: testPatience}, transport.Config{})
	begun, answer := make(chan struct{}), make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() { // rank 1, who takes a while
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		close(begun)
		<-answer
		_, _ = c.Write((&wire.Challenge{Verdict: wire.OtherJob}).Append(nil))
	}()
	addr := address{rank: 1, instance: 5, places: []netip.AddrPort{netip.MustParseAddrPort(l.Addr().String())}}.append(nil)
	result := make(chan error)
	go func() {
		_, err := a.Connect(t.Context(), 1, addr)
		result <- err
	}()
	<-begun
	for range 3 * (moreYoung + 4) {
		knock(t, a)
	}
	require.Eventually(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.young) == moreYoung+4 && len(a.dialed) == 1
	}, testPatience, time.Millisecond)
	time.Sleep(10 * time.Millisecond) // the last of them push others out
	close(answer)
	require.ErrorIs(t, <-result, errOtherJob)
	a.mu.Lock()
	defer a.mu.Unlock()
	require.Empty(t, a.dialed)
}

// TestStrangersAndLink: who has just come in makes no room for strangers, however many call before the goroutine of his handshake goes on.
func TestStrangersAndLink(t *testing.T) {
	a := openRank(t, 0, 3, Config{}, transport.Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	far, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer far.Close()
	near, err := l.Accept()
	require.NoError(t, err)
	require.True(t, a.begin(near))
	done := make(chan error, 1)
	go func() { done <- a.answerCall(near.(*net.TCPConn)) }()
	s := knock(t, a)
	s.Conn = far
	s.enter()
	require.NoError(t, <-done)
	for range 2 * (moreYoung + 2*len(a.links)) {
		end, other := net.Pipe()
		defer end.Close()
		require.True(t, a.begin(other))
	}
	s.send(frame(wire.Header{Kind: wire.Alive, Flags: wire.AckWanted}))
	s.send(frame(wire.Header{Kind: wire.Read, Len: 8, RAddr: a.open.Addr(), RKey: a.reg.RKey}))
	var answer [24 + 8]byte
	_, err = io.ReadFull(s, answer[:])
	require.NoError(t, err)
	require.True(t, a.links[1].Load().alive.Load())
}

// TestLateWelcome: a welcome that comes when the peer has given that connection up, and has made another one itself, does not end the newer one.
func TestLateWelcome(t *testing.T) {
	a := openRank(t, 2, 3, Config{}, transport.Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	addr := address{rank: 1, instance: 77, places: []netip.AddrPort{netip.MustParseAddrPort(l.Addr().String())}}.append(nil)
	type result struct {
		ep  transport.EP
		err error
	}
	done := make(chan result, 1)
	go func() {
		ep, err := a.Connect(t.Context(), 1, addr)
		done <- result{ep, err}
	}()
	called, err := l.Accept() // rank 1 answers
	require.NoError(t, err)
	defer called.Close()
	s := wire.Session{Secret: a.job.Secret}
	var hello [wire.HelloBytes]byte
	_, err = io.ReadFull(called, hello[:])
	require.NoError(t, err)
	s.Hello, err = wire.DecodeHello(hello[:])
	require.NoError(t, err)
	_, err = called.Write((&wire.Challenge{MAC: s.ChallengeMAC()}).Append(nil))
	require.NoError(t, err)
	var proof [wire.ProofBytes]byte
	_, err = io.ReadFull(called, proof[:])
	require.NoError(t, err)

	newer := knock(t, a).enter() // and calls
	newer.send(frame(wire.Header{Kind: wire.Alive}))
	late := wire.Welcome{Incarnation: 1, Window: 64}
	late.MAC = s.WelcomeMAC(late)
	_, err = called.Write(late.Append(nil))
	require.NoError(t, err)
	r := <-done
	require.NoError(t, r.err)
	require.Equal(t, a.links[1].Load().ep, r.ep)
	require.Greater(t, r.ep.Incarnation, late.Incarnation)
	newer.send(frame(wire.Header{Kind: wire.Read, Len: 8, RAddr: a.open.Addr(), RKey: a.reg.RKey}))
	var answer [24 + 8]byte
	_, err = io.ReadFull(newer, answer[:])
	require.NoError(t, err)
}

// TestAnewBeforeDead: a rank that was started anew calls before the end of its predecessor was noticed, whose machine may have lost its power. It need not
// wait for that, and the predecessor is known to be gone.
func TestAnewBeforeDead(t *testing.T) {
	a := openRank(t, 0, 2, Config{}, transport.Config{})
	before := knock(t, a)
	require.Equal(t, wire.Accepted, before.hello().Verdict)
	before.prove(wire.Proof{Window: 64})
	require.Equal(t, wire.Accepted, before.welcome().Verdict)
	ep := a.links[1].Load().ep
	b := openRank(t, 1, 2, Config{}, transport.Config{})
	b.serves(t, a)
	a.await(t, func(c transport.Completion) bool { return c.Kind == transport.OpPeerDown && c.EP == ep })
	a.serves(t, b)
}

// TestSlowStrangers holds more connections open than there is room for, none of which says enough. Ranks get in
// all the same, and in the end the strangers are gone.
func TestSlowStrangers(t *testing.T) {
	a := openRank(t, 0, 2, quick, transport.Config{})
	b := openRank(t, 1, 2, quick, transport.Config{})
	goroutines := runtime.NumGoroutine()
	var all []*stranger
	for i := range 3 * moreYoung {
		s := knock(t, a)
		s.send(s.s.Hello.Append(nil)[:i%wire.HelloBytes/2])
		all = append(all, s)
	}
	b.serves(t, a)
	// Who was turned away is served by nobody, a moment later.
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+moreYoung+2*2+8 }, testPatience, time.Millisecond)
	start := time.Now()
	for i, s := range all {
		if _, err := s.Write([]byte{0}); err == nil && i%7 == 0 {
			time.Sleep(time.Millisecond) // a byte now and then does not help
		}
	}
	for _, s := range all {
		require.Empty(t, s.dropped())
	}
	require.Less(t, time.Since(start), 20*quick.FailureTimeout)
	require.Eventually(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.young) == 0
	}, testPatience, time.Millisecond)
}
