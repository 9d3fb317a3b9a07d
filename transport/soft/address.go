package soft

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"gopgas/transport"
)

// nonce names one opening of a domain. The low bit of its first word is free for the answer to a connection.
type nonce [2]uint64

func newNonce() (nonce, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nonce{}, fmt.Errorf("random name: %w", err)
	}
	n := nonce{binary.LittleEndian.Uint64(b[:]) &^ 1, binary.LittleEndian.Uint64(b[8:])}
	if n[0] == 0 {
		n[0] = 2 // zero stands for nobody
	}
	return n, nil
}

// address is what a peer must know of a domain.
type address struct {
	rank, size uint32
	pid        uint32
	base       uint64 // of its board, in its own address space
	nonce      nonce
	token      transport.Token // of its board
}

// Errors about addresses and boards.
var (
	errAddress     = errors.New("not an address of the soft NIC")
	errOtherJob    = errors.New("the address was made by another job, or with another secret")
	errNotItsBoard = errors.New("the peer's queues are not those that its address speaks of")
)

const (
	addressVersion = 1
	addressHead    = 4 + 4 + 4 + 4 + 8 + 16 + 4 // version, rank, size, pid, base, nonce, bytes of the token
	maxToken       = recordBytes - 16 - addressHead - sha256.Size
)

// encode writes a with the proof that its maker belongs to the job.
func (a address) encode(job string, secret []byte) []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, addressHead+len(a.token)+sha256.Size)
	b = le.AppendUint32(b, addressVersion)
	b = le.AppendUint32(b, a.rank)
	b = le.AppendUint32(b, a.size)
	b = le.AppendUint32(b, a.pid)
	b = le.AppendUint64(b, a.base)
	b = le.AppendUint64(b, a.nonce[0])
	b = le.AppendUint64(b, a.nonce[1])
	b = le.AppendUint32(b, uint32(len(a.token)))
	b = append(b, a.token...)
	return append(b, proof(b, job, secret)...)
}

// proof is the code that authenticates an address.
func proof(b []byte, job string, secret []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(job))))
	h.Write([]byte(job))
	h.Write(b)
	return h.Sum(nil)
}

// parseAddress accepts exactly what encode makes for the same job. Nothing is looked at before the proof.
func parseAddress(b []byte, job string, secret []byte) (address, error) {
	le := binary.LittleEndian
	if len(b) < addressHead+sha256.Size || len(b) > addressHead+sha256.Size+maxToken {
		return address{}, fmt.Errorf("%w: %d bytes", errAddress, len(b))
	}
	if v := le.Uint32(b); v != addressVersion {
		return address{}, fmt.Errorf("%w: version %d, this program speaks %d: run the same build on all ranks", errAddress, v, addressVersion)
	}
	body := b[:len(b)-sha256.Size]
	if !hmac.Equal(b[len(body):], proof(body, job, secret)) {
		return address{}, errOtherJob
	}
	a := address{
		rank: le.Uint32(b[4:]), size: le.Uint32(b[8:]), pid: le.Uint32(b[12:]), base: le.Uint64(b[16:]),
		nonce: nonce{le.Uint64(b[24:]), le.Uint64(b[32:])}, token: transport.Token(body[addressHead:]),
	}
	switch {
	case int(le.Uint32(b[40:])) != len(a.token):
		return address{}, fmt.Errorf("%w: a token of %d bytes, %d said", errAddress, len(a.token), le.Uint32(b[40:]))
	case a.rank >= a.size, a.pid == 0 || a.pid > 1<<31-1, a.nonce[0] == 0 || a.nonce[0]&1 != 0:
		return address{}, fmt.Errorf("%w: rank %d of %d, process %d", errAddress, a.rank, a.size, a.pid)
	}
	return a, nil
}
