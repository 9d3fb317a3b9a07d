package side

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func sampleAddress() Address {
	return Address{Rank: 3, Instance: 1 << 60, At: netip.MustParseAddrPort("10.9.0.1:4711")}
}

func sampleHello() Hello {
	return Hello{From: sampleAddress(), ToRank: 5, ToInstance: 77, Last: 9, Job: [16]byte{1, 2}, nonce: [16]byte{3}}
}

func sampleFrame() Frame {
	return Frame{Word: WordAccept, Serial: 1 << 50, Card: Card{Number: 1<<24 - 1, PSN: 17, GID: [16]byte{15: 9}, LID: 4, MTU: 5, Reads: 16}}
}

func TestWire(t *testing.T) {
	a := sampleAddress()
	got, err := ParseAddress(a.Append(nil))
	require.NoError(t, err)
	require.Equal(t, a, got)
	six := a
	six.At = netip.MustParseAddrPort("[2001:db8::7]:1")
	got, err = ParseAddress(six.Append(nil))
	require.NoError(t, err)
	require.Equal(t, six, got)

	h := sampleHello()
	gotHello, err := parseHello(h.append(nil))
	require.NoError(t, err)
	require.Equal(t, h, gotHello)

	f := sampleFrame()
	body := f.body()
	gotFrame, err := parseFrame(&body)
	require.NoError(t, err)
	require.Equal(t, f, gotFrame)
}

func TestWireRefused(t *testing.T) {
	good := func() []byte { a := sampleAddress(); return a.Append(nil) }
	for name, b := range map[string][]byte{
		"nothing": nil, "cut": good()[:addressBytes-1], "longer": append(good(), 0), "zeros": make([]byte, addressBytes),
		"no port": append(good()[:addressBytes-2], 0, 0),
	} {
		_, err := ParseAddress(b)
		require.ErrorIs(t, err, errAddress, name)
	}
	old := good()
	old[3]++
	_, err := ParseAddress(old)
	require.ErrorContains(t, err, "version 2, this library speaks 1")

	for name, spoil := range map[string]func(b *[frameBody]byte){
		"no word":        func(b *[frameBody]byte) { b[0] = 0 },
		"unknown word":   func(b *[frameBody]byte) { b[0] = byte(WordFull) + 1 },
		"rest":           func(b *[frameBody]byte) { b[frameBody-1] = 1 },
		"long number":    func(b *[frameBody]byte) { b[1] = 1 },
		"no MTU":         func(b *[frameBody]byte) { b[27] = 0 },
		"card where not": func(b *[frameBody]byte) { b[0] = byte(WordReady) },
	} {
		f := sampleFrame()
		b := f.body()
		spoil(&b)
		_, err := parseFrame(&b)
		require.ErrorIs(t, err, ErrFrame, name)
	}
}

// FuzzAddress, FuzzHello and FuzzFrame feed the parsers; what they take they must write again as it was.
func FuzzAddress(f *testing.F) {
	a := sampleAddress()
	f.Add(a.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := ParseAddress(b); err == nil {
			again, err := ParseAddress(a.Append(nil))
			require.NoError(t, err)
			require.Equal(t, a, again)
		}
	})
}

func FuzzHello(f *testing.F) {
	h := sampleHello()
	f.Add(h.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := parseHello(b); err == nil {
			again, err := parseHello(h.append(nil))
			require.NoError(t, err)
			require.Equal(t, h, again)
		}
	})
}

func FuzzFrame(f *testing.F) {
	s := sampleFrame()
	body := s.body()
	f.Add(body[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != frameBody {
			return
		}
		if got, err := parseFrame((*[frameBody]byte)(b)); err == nil {
			again := got.body()
			require.True(t, bytes.Equal(b, again[:]))
		}
	})
}

// wiretap changes the nth byte that is written.
type wiretap struct {
	net.Conn
	nth int
}

func (w *wiretap) Write(b []byte) (int, error) {
	if w.nth >= 0 && w.nth < len(b) {
		b = bytes.Clone(b)
		b[w.nth] ^= 0x40
	}
	w.nth -= len(b)
	return w.Conn.Write(b)
}

// shake runs a handshake and one frame each way, and returns both sides' errors.
func shake(t *testing.T, dialer, listener Authority, tapDialer, tapListener int) (heard Hello, dialed, listened error) {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			conn, err := server.Accept()
			if err != nil {
				return err
			}
			defer conn.Close()
			l, h, err := listener.Answer(&wiretap{conn, tapListener})
			if err != nil {
				return err
			}
			f, err := l.Receive()
			if err != nil {
				return err
			}
			heard = h
			if f != sampleFrame() {
				return ErrFrame
			}
			return l.Send(Frame{Word: WordYield})
		}()
	}()
	conn, err := net.Dial("tcp", server.Addr().String())
	require.NoError(t, err)
	dialed = func() error {
		defer conn.Close()
		h := sampleHello()
		l, err := dialer.Greet(&wiretap{conn, tapDialer}, &h)
		if err != nil {
			return err
		}
		if err := l.Send(sampleFrame()); err != nil {
			return err
		}
		f, err := l.Receive()
		if err == nil && f.Word != WordYield {
			err = ErrFrame
		}
		return err
	}()
	listened = <-done
	return heard, dialed, listened
}

func TestProof(t *testing.T) {
	a := NewAuthority([]byte("secret"), "job")
	heard, dialed, listened := shake(t, a, a, -1, -1)
	require.NoError(t, dialed)
	require.NoError(t, listened)
	require.Equal(t, a.Job, heard.Job)
	require.NotEqual(t, sampleHello().nonce, heard.nonce, "the nonce is drawn anew")

	// Another secret: the dialer finds out first, and the listener hears no frame.
	heard, dialed, listened = shake(t, a, NewAuthority([]byte("guess"), "job"), -1, -1)
	require.ErrorIs(t, dialed, ErrSecret)
	require.Error(t, listened)
	require.Zero(t, heard)
}

// TestProofTampered changes each byte that the dialer or the listener sends in turn: one of the two must notice.
func TestProofTampered(t *testing.T) {
	a := NewAuthority([]byte("secret"), "job")
	for i := range helloBytes + frameBytes {
		_, dialed, listened := shake(t, a, a, i, -1)
		require.Error(t, errors.Join(dialed, listened), "byte %d of the dialer's was changed", i)
	}
	for i := range challengeBytes + frameBytes {
		_, dialed, _ := shake(t, a, a, -1, i)
		require.Error(t, dialed, "byte %d of the listener's was changed", i)
	}
}

// TestReplay sends a dialer's recorded bytes again: the listener's nonce is another.
func TestReplay(t *testing.T) {
	a := NewAuthority([]byte("secret"), "job")
	here, there := net.Pipe()
	var recorded []byte
	go func() {
		h := sampleHello()
		if l, err := a.Greet(recorder{here, &recorded}, &h); err == nil {
			_ = l.Send(sampleFrame())
		}
	}()
	l, _, err := a.Answer(there)
	require.NoError(t, err)
	_, err = l.Receive()
	require.NoError(t, err)
	here.Close()

	here, there = net.Pipe()
	defer here.Close()
	go func() {
		buf := make([]byte, challengeBytes)
		_, _ = here.Write(recorded[:helloBytes])
		_, _ = here.Read(buf)
		_, _ = here.Write(recorded[helloBytes:])
	}()
	l, _, err = a.Answer(there)
	require.NoError(t, err)
	_, err = l.Receive()
	require.ErrorIs(t, err, ErrMAC)
}

// cutter writes so many bytes and then closes.
type cutter struct {
	net.Conn
	left int
}

func (c *cutter) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b[:min(len(b), c.left)])
	if c.left -= n; c.left == 0 {
		c.Close()
	}
	return n, err
}

// TestCutOff ends a dialer's connection within what it says, at every place that matters, or has it say too much: what was whole
// is heard, the rest is not.
func TestCutOff(t *testing.T) {
	a := NewAuthority([]byte("secret"), "job")
	const whole = helloBytes + frameBytes
	for _, bytes := range []int{1, 4, helloBytes - 1, helloBytes, helloBytes + 1, whole - 1, whole, whole + 1, whole + frameBytes - 1, whole + frameBytes} {
		here, there := net.Pipe()
		dialed := make(chan error, 1)
		go func() {
			defer here.Close()
			c := &cutter{here, bytes}
			h := sampleHello()
			l, err := a.Greet(c, &h)
			if err == nil {
				err = l.Send(sampleFrame())
			}
			if err == nil {
				_, err = c.Write(make([]byte, frameBytes)) // nobody has made a code for these
			}
			dialed <- err
		}()
		heard := 0
		l, _, err := a.Answer(there)
		for err == nil {
			if _, err = l.Receive(); err == nil {
				heard++
			}
		}
		there.Close()
		<-dialed
		require.Equal(t, bytes >= whole, heard == 1, "%d bytes: %d frames were heard", bytes, heard)
		if bytes == whole+frameBytes {
			require.ErrorIs(t, err, ErrMAC)
		}
	}
}

type recorder struct {
	net.Conn
	to *[]byte
}

func (r recorder) Write(b []byte) (int, error) {
	*r.to = append(*r.to, b...)
	return r.Conn.Write(b)
}
