package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// Version is the version of the format. It changes with every change that an older reader would misunderstand.
const Version = 2

// Lengths of the messages of the handshake, in bytes.
const (
	PrefixBytes    = 12
	HelloBytes     = PrefixBytes + 32 + 8 + 16 + nonceBytes
	ChallengeBytes = PrefixBytes + 4 + nonceBytes + macBytes
	ProofBytes     = 8 + macBytes
	WelcomeBytes   = 12 + macBytes
)

const (
	nonceBytes = 32
	macBytes   = sha256.Size
	mark       = uint64(0x50_47_41_53_54_43_50_01) // a stranger's first bytes are something else
)

// Verdict is how a side judges what it was sent.
type Verdict uint8

// The verdicts.
const (
	Accepted    Verdict = iota
	OtherFormat         // another version of the format
	OtherJob            // another job, or one of another size
	OtherRank           // this is not the rank that was called
	OldAddress          // the rank's domain is another one by now
	Meet                // the other side's own call is on the way, or its connection is newer: use that
	Closing             // the rank is closing its domain
	Full                // the rank has no file descriptor left for a connection
	lastVerdict = Full
)

// Errors of the decoders.
var (
	// ErrStranger: what was sent is not this format in any version.
	ErrStranger = errors.New("wire: the other side does not speak this language")
	errMessage  = errors.New("wire: a message of the handshake that makes no sense")
)

// Prefix is what Hello and Challenge begin with.
type Prefix struct{ Version uint32 }

func (p Prefix) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, mark)
	return binary.LittleEndian.AppendUint32(b, p.Version)
}

// DecodePrefix reads the first PrefixBytes bytes of a message.
func DecodePrefix(b []byte) (Prefix, error) {
	if len(b) < PrefixBytes || binary.LittleEndian.Uint64(b) != mark {
		return Prefix{}, ErrStranger
	}
	return Prefix{binary.LittleEndian.Uint32(b[8:])}, nil
}

// Hello is what the side that dials says first.
type Hello struct {
	Job      [32]byte // JobHash
	From, To uint32   // ranks
	Caller   uint64   // the dialling rank's domain
	Callee   uint64   // the domain that it wants, from the address
	Nonce    [nonceBytes]byte
}

// JobHash names a job: its name and its size.
func JobHash(name string, size int) [32]byte {
	h := sha256.New()
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(size)))
	h.Write([]byte(name))
	return [32]byte(h.Sum(nil))
}

// Append appends the message to b.
func (h *Hello) Append(b []byte) []byte {
	b = append(Prefix{Version}.append(b), h.Job[:]...)
	b = binary.LittleEndian.AppendUint32(b, h.From)
	b = binary.LittleEndian.AppendUint32(b, h.To)
	b = binary.LittleEndian.AppendUint64(b, h.Caller)
	b = binary.LittleEndian.AppendUint64(b, h.Callee)
	return append(b, h.Nonce[:]...)
}

// DecodeHello reads a whole message, whose prefix must have been looked at before.
func DecodeHello(b []byte) (h Hello, err error) {
	if len(b) != HelloBytes {
		return h, errMessage
	}
	b = b[PrefixBytes:]
	copy(h.Job[:], b)
	h.From, h.To = binary.LittleEndian.Uint32(b[32:]), binary.LittleEndian.Uint32(b[36:])
	h.Caller, h.Callee = binary.LittleEndian.Uint64(b[40:]), binary.LittleEndian.Uint64(b[48:])
	copy(h.Nonce[:], b[56:])
	return h, nil
}

// Challenge is the answer to Hello. With a verdict other than Accepted it is the last message and has no MAC.
type Challenge struct {
	Verdict Verdict
	Nonce   [nonceBytes]byte
	MAC     [macBytes]byte
}

// Append appends the message to b.
func (c *Challenge) Append(b []byte) []byte {
	b = append(Prefix{Version}.append(b), byte(c.Verdict), 0, 0, 0)
	return append(append(b, c.Nonce[:]...), c.MAC[:]...)
}

// DecodeChallenge reads a whole message, whose prefix must have been looked at before.
func DecodeChallenge(b []byte) (c Challenge, err error) {
	if len(b) != ChallengeBytes {
		return c, errMessage
	}
	b = b[PrefixBytes:]
	if Verdict(b[0]) > lastVerdict || b[1]|b[2]|b[3] != 0 {
		return c, errMessage
	}
	c.Verdict = Verdict(b[0])
	copy(c.Nonce[:], b[4:])
	copy(c.MAC[:], b[4+nonceBytes:])
	return c, nil
}

// Proof is the dialling side's proof that it knows the secret.
type Proof struct {
	Last   uint32 // the newest incarnation of a connection with the other rank that it knows
	Window uint32 // how many requests it sends at most before their acknowledgement
	MAC    [macBytes]byte
}

// Append appends the message to b.
func (p *Proof) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, p.Last)
	b = binary.LittleEndian.AppendUint32(b, p.Window)
	return append(b, p.MAC[:]...)
}

// DecodeProof reads a whole message.
func DecodeProof(b []byte) (p Proof, err error) {
	if len(b) != ProofBytes {
		return p, errMessage
	}
	p.Last, p.Window = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	copy(p.MAC[:], b[8:])
	return p, nil
}

// Welcome is the last message of the handshake. With a verdict other than Accepted there is no connection.
type Welcome struct {
	Verdict     Verdict
	Incarnation uint32 // of the connection that begins
	Window      uint32 // as in Proof
	MAC         [macBytes]byte
}

// Append appends the message to b.
func (w *Welcome) Append(b []byte) []byte {
	b = append(b, byte(w.Verdict), 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, w.Incarnation)
	b = binary.LittleEndian.AppendUint32(b, w.Window)
	return append(b, w.MAC[:]...)
}

// DecodeWelcome reads a whole message.
func DecodeWelcome(b []byte) (w Welcome, err error) {
	if len(b) != WelcomeBytes || Verdict(b[0]) > lastVerdict || b[1]|b[2]|b[3] != 0 {
		return w, errMessage
	}
	w.Verdict = Verdict(b[0])
	w.Incarnation, w.Window = binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	copy(w.MAC[:], b[12:])
	return w, nil
}

// Session is what both sides know when the nonces have been exchanged; its methods are the MACs.
type Session struct {
	Secret []byte
	Hello  Hello
	Nonce  [nonceBytes]byte // the Challenge's
}

// mac is HMAC-SHA256 over who speaks, what was said before, and what is said now.
func (s *Session) mac(label string, now ...byte) (out [macBytes]byte) {
	h := hmac.New(sha256.New, s.Secret)
	h.Write(append([]byte{byte(len(label))}, label...)) // so that nothing said in one place fits in another
	h.Write(s.Hello.Append(nil))
	h.Write(s.Nonce[:])
	h.Write(now)
	h.Sum(out[:0])
	return out
}

// ChallengeMAC proves that the called side knows the secret.
func (s *Session) ChallengeMAC() [macBytes]byte { return s.mac("challenge") }

// ProofMAC proves that the dialling side knows it, and that it said the rest of p.
func (s *Session) ProofMAC(p Proof) [macBytes]byte {
	p.MAC = [macBytes]byte{}
	return s.mac("proof", p.Append(nil)...)
}

// WelcomeMAC proves that the called side said the rest of w.
func (s *Session) WelcomeMAC(w Welcome) [macBytes]byte {
	w.MAC = [macBytes]byte{}
	return s.mac("welcome", w.Append(nil)...)
}

// Same compares two MACs in constant time.
func Same(a, b [macBytes]byte) bool { return hmac.Equal(a[:], b[:]) }
