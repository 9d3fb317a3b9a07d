package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"gopgas/transport"
)

// ErrToken is wrapped by the error of Map for a token that no mapper of this build makes.
var ErrToken = errors.New("malformed memory token")

// kind says what stands behind a token.
type kind uint8

const (
	kindMemfd kind = iota + 1
	kindFile
	kindHeap
)

func (k kind) String() string {
	switch k {
	case kindMemfd:
		return "memfd"
	case kindFile:
		return "file"
	case kindHeap:
		return "heap"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

const (
	tokenVersion  = 1
	tokenLen      = 96
	heapTokenLen  = 16
	maxTokenBytes = 1 << 47 // the address space of a process on the machines that Go runs on
)

// token is what a process must know to map memory of another. All integers are little endian on the wire.
type token struct {
	kind  kind
	ways  Ways     // how the owner can be reached
	pid   uint32   // the owner, as its own pid namespace counts
	fd    uint32   // its descriptor
	dev   uint64   // identity of the memory, compared after it was opened
	ino   uint64   //
	bytes uint64   // as asked for; the object is as large as the pages that hold it
	pidNS uint64   // the owner's pid namespace; 0: not known
	id    uint64   // random, part of a memfd's name: inode numbers of memfds are small and repeat after a boot
	sock  uint64   // random, the name of the owner's socket
	boot  [16]byte // the boot of the machine; zero: not known
	nonce [16]byte // secret that the owner's socket asks for
}

func (t token) encode() transport.Token {
	b := make([]byte, 0, tokenLen)
	b = append(b, tokenVersion, byte(t.kind), byte(t.ways), 0)
	b = binary.LittleEndian.AppendUint32(b, t.pid)
	b = binary.LittleEndian.AppendUint32(b, t.fd)
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, v := range [...]uint64{t.dev, t.ino, t.bytes, t.pidNS, t.id, t.sock} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = append(b, t.boot[:]...)
	return append(b, t.nonce[:]...)
}

// parseToken accepts exactly what encode makes.
func parseToken(b []byte) (token, error) {
	k, err := tokenKind(b)
	if err != nil {
		return token{}, err
	}
	if k == kindHeap {
		return token{}, fmt.Errorf("%w: the memory is a goroutine rank's and cannot leave its process", transport.ErrUnsupported)
	}
	if len(b) != tokenLen {
		return token{}, fmt.Errorf("%w: %d bytes, want %d", ErrToken, len(b), tokenLen)
	}
	u64 := func(off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
	t := token{
		kind: k, ways: Ways(b[2]),
		pid: binary.LittleEndian.Uint32(b[4:]), fd: binary.LittleEndian.Uint32(b[8:]),
		dev: u64(16), ino: u64(24), bytes: u64(32), pidNS: u64(40), id: u64(48), sock: u64(56),
		boot: [16]byte(b[64:80]), nonce: [16]byte(b[80:96]),
	}
	switch {
	case b[3] != 0 || binary.LittleEndian.Uint32(b[12:]) != 0:
		err = errors.New("reserved bytes are set")
	case t.ways == 0 || t.ways&^reachers != 0:
		err = fmt.Errorf("ways %#x", uint8(t.ways))
	case t.pid == 0 || t.pid > math.MaxInt32:
		err = fmt.Errorf("process %d", t.pid)
	case t.fd > math.MaxInt32:
		err = fmt.Errorf("descriptor %d", t.fd)
	case t.ino == 0:
		err = errors.New("inode 0")
	case t.bytes == 0 || t.bytes > maxTokenBytes:
		err = fmt.Errorf("%d bytes of memory", t.bytes)
	}
	if err != nil {
		return token{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	return t, nil
}

// tokenKind checks what all tokens have in common.
func tokenKind(b []byte) (kind, error) {
	if len(b) < 4 {
		return 0, fmt.Errorf("%w: %d bytes", ErrToken, len(b))
	}
	if b[0] != tokenVersion {
		return 0, fmt.Errorf("%w: version %d, this program makes %d: run the same build on all ranks", ErrToken, b[0], tokenVersion)
	}
	k := kind(b[1])
	if k < kindMemfd || k > kindHeap {
		return 0, fmt.Errorf("%w: %s", ErrToken, k)
	}
	return k, nil
}

// heapToken names memory in the table of one group of goroutine ranks.
type heapToken struct {
	group uint32 // random, so that a token of another group is noticed
	id    uint64 // counts from 1
}

func (t heapToken) encode() transport.Token {
	b := make([]byte, 0, heapTokenLen)
	b = append(b, tokenVersion, byte(kindHeap), 0, 0)
	b = binary.LittleEndian.AppendUint32(b, t.group)
	return binary.LittleEndian.AppendUint64(b, t.id)
}

// parseHeapToken accepts exactly what encode makes.
func parseHeapToken(b []byte) (heapToken, error) {
	k, err := tokenKind(b)
	if err != nil {
		return heapToken{}, err
	}
	if k != kindHeap {
		return heapToken{}, fmt.Errorf("%w: the memory (%s) is another process's, and goroutine ranks map only each other's",
			transport.ErrUnsupported, k)
	}
	if len(b) != heapTokenLen || b[2] != 0 || b[3] != 0 {
		return heapToken{}, fmt.Errorf("%w: %d bytes, want %d with reserved bytes zero", ErrToken, len(b), heapTokenLen)
	}
	t := heapToken{group: binary.LittleEndian.Uint32(b[4:]), id: binary.LittleEndian.Uint64(b[8:])}
	if t.id == 0 {
		return heapToken{}, fmt.Errorf("%w: memory 0", ErrToken)
	}
	return t, nil
}
